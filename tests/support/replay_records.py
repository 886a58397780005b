"""Records of replays, built without a replay."""

from __future__ import annotations

from typing import Any

from dpaudit.model.claim import PrivacyClaim
from dpaudit.replaying.ledger import LedgerLine
from dpaudit.replaying.record import GuessesFound, PartingFound, ReadingFound, ReplayRecord
from dpaudit.results.verdict import Verdict

READING = ReadingFound(
    line="lib.py:88",
    law="laplace",
    released_at="model.tables['age'][3]",
    threshold=12.5,
    event="`model.tables['age'][3]` is at least 12.5 (the noisy answer of lib.py:88)",
    fits=200,
    bound=1.331,
)
GUESSES = GuessesFound(fits=43, guesses=16, right=16, score="maximum (age)", decided=True)
PARTING = PartingFound(
    kind="operands",
    place="lib.py:12",
    other_place=None,
    inside="20.0",
    outside="19.0",
    meaning="a value without noise is combined with noisy answers",
    replays=2,
)


def ledger_line(**other: Any) -> LedgerLine:
    """A line of Laplace noise that spends 2."""
    given: dict[str, Any] = {
        "place": "lib.py:88",
        "function": "fit",
        "law": "laplace",
        "times": 1,
        "scale": 0.5,
        "other_scale": None,
        "l1": 1.0,
        "l2": 1.0,
        "linf": 1.0,
        "counts_as": "released",
        "epsilon": 2.0,
        "mu": None,
        "share": 1.0,
        "sampling": None,
    }
    return LedgerLine(**{**given, **other})


def replay_record(**other: Any) -> ReplayRecord:
    """A replay that is consistent with a claim of 2, all of which one line spends."""
    given: dict[str, Any] = {
        "verdict": Verdict.CONSISTENT,
        "of_proof": False,
        "reasons": ("equal in 8 of 8 replays",),
        "generator": "lib.py:Gan",
        "parameters": {},
        "source": "t.csv",
        "schema_inferred": False,
        "target": "row:3",
        "claim": PrivacyClaim(epsilon=2.0, delta=0.0),
        "spent": 2.0,
        "spent_unlimited": False,
        "spent_note": None,
        "spent_is_exact": True,
        "spent_is_upper_limit": False,
        "proved": 0.0,
        "reading": None,
        "guesses": None,
        "confidence": 0.95,
        "fits": 20,
        "ledger": (ledger_line(),),
        "parting": None,
        "stored": (),
        "not_followed": (),
        "fixed_seeds": (),
        "few_seeds": (),
        "fresh_noise": (),
        "not_compared": (),
        "internal": (),
        "proof": None,
        "access": "model",
        "public_coins": False,
        "features": None,
        "replays": 8,
        "seed": 0,
        "seconds": 1.0,
        "seconds_a_fit": 0.01,
        "versions": {"dpaudit": "0.1.0"},
        "reproduce": "dpaudit replay lib.py:Gan --data t.csv --target row:3",
    }
    return ReplayRecord(**{**given, **other})
