"""How often a secret is guessed: at exactly the claim, of a known epsilon, of a copy, of nothing.

Usage: python -m reports.secrets.run [PART ...]   (ten minutes in one process; resumes)

Writes results/PART.json after every few audits, and the table of README.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import mean
from typing import Any, Final, NamedTuple

import numpy as np

from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.settings import AuditSettings, TwoWorlds
from dpaudit.auditing.two_worlds.attacking import Part, SplitTrials, evaluate, fit_attack
from dpaudit.auditing.two_worlds.secret import SecretGuess
from dpaudit.bounds import EpsilonGuarantee
from dpaudit.game.pool import workers_ended
from dpaudit.model.claim import Neighbours
from dpaudit.plugins.protocols import FloatArray, GameView
from dpaudit.results.outcomes import TwoWorldsOutcome
from dpaudit.seeds import Stream
from reports import markdown
from reports.audits import run_audits
from reports.calibration.pipeline import worlds_of
from reports.command import StudyParser, start
from reports.secrets.mechanisms import (
    SCHEMA,
    SECRET,
    TABLE,
    TARGET,
    Answers,
    Copy,
    RandomisedResponse,
)

ATTACK: Final = "query-target,classifier=logistic-regression"
AT_ONCE: Final = 10
"""Audits between two writes of the results."""


class Kind(NamedTuple):
    """Audits of one kind.

    Attributes:
        asks: What is audited, in words.
        generator: The generator.
        epsilon: The epsilon that it has; None if it has none.
        audits: How many.
        models: Shadow models of each.
        whole: Whether they run as `dpaudit audit` does; else only the guess is fitted and scored,
            in one process, as an audit does that attacks membership once.
    """

    asks: str
    generator: Any
    epsilon: float | None
    audits: int
    models: int
    whole: bool = False


HONEST: Final = RandomisedResponse(epsilon=1.0)
KNOWN: Final = RandomisedResponse(epsilon=2.0)
COPY: Final = Copy(probability=0.6)
PARTS: Final = {
    "calibration": Kind("randomised response", HONEST, 1.0, 1000, 40),
    "nothing": Kind("always the same release", Copy(probability=0.0), 0.0, 100, 40),
    "answer_100": Kind("randomised response", KNOWN, 2.0, 20, 100),
    "answer_400": Kind("randomised response", KNOWN, 2.0, 20, 400),
    "answer_1600": Kind("randomised response", KNOWN, 2.0, 10, 1600),
    "copy": Kind("copies in 60 % of releases", COPY, None, 20, 100),
    "whole": Kind("randomised response, whole audits", HONEST, 1.0, 20, 40, whole=True),
    "whole_copy": Kind("copies in 60 %, whole audits", COPY, None, 5, 100, whole=True),
}
HEADS: Final = (
    *("generator", "true epsilon", "models", "audits", "right with", "right without"),
    *("mean bound", "bound above the truth"),
)


def main(given: Sequence[str] | None = None) -> None:
    """Runs the audits that the results lack; writes the page's table if they are its own."""
    parser = StudyParser(__file__, __doc__, parts=tuple(PARTS))
    run = parser.run_of(parser.parse_args(given))
    for name in run.parts:
        kind = PARTS[name]._replace(models=20) if run.quick else PARTS[name]
        audited: Callable[[int], dict[str, Any]]
        audited = partial(_audited if kind.whole else _guessed, kind, name)
        wanted = 2 if run.quick else kind.audits
        with workers_ended():
            run_audits(run.out / f"{name}.json", audited, wanted=wanted, at_once=AT_ONCE)
    if run.is_whole:
        markdown.replace_table(run.home / "README.md", page(run.out))


def page(out: Path) -> str:
    """The results as a Markdown table.

    Args:
        out: Folder of the results.
    """
    return markdown.table(HEADS, _rows(out))


def _audited(kind: Kind, name: str, number: int) -> dict[str, Any]:
    """A whole audit."""
    result = audit_by_keywords(
        kind.generator,
        TABLE,
        schema=SCHEMA,
        target=TARGET,
        secret=SECRET,
        attacks=(ATTACK,),
        shadow_models=kind.models,
        seed=Stream(number, "secrets", name).seed(),
        jobs=1,
    )
    assert isinstance(result.game, TwoWorldsOutcome)
    secret = result.game.secret
    assert secret is not None
    return {
        "verdict": result.verdict.value,
        "proved": secret.proved,
        "with": [secret.inside.right, secret.inside.releases],
        "without": [secret.outside.right, secret.outside.releases],
    }


def _guessed(kind: Kind, name: str, number: int) -> dict[str, Any]:
    """The guesses of one audit, by its own plan, rules and bounds."""
    settings = AuditSettings(
        game=TwoWorlds(secret=SECRET, attacks=(ATTACK,), shadow_models=kind.models)
    )
    rng = Stream(number, "secrets", name).rng()
    member = worlds_of(settings, rng)
    features = np.stack([_features(kind.generator, world, rng) for world in member])
    first = 2 * settings.game.fitted
    fitting, scored = (
        Part(features[part], member[part]) for part in (slice(first), slice(first, None))
    )
    guarantee = EpsilonGuarantee(0.0)
    fitted = fit_attack(GUESS, fitting, settings=settings, guarantee=guarantee, rng=rng)
    evaluation = evaluate(
        fitted,
        SplitTrials(fitting, scored, failed_in=0, failed_out=0),
        guarantee=guarantee,
        confidence=settings.attack_confidence,
    )
    right = scored.features[:][:, 0]
    inside, outside = right[scored.member], right[~scored.member]
    return {
        "proved": evaluation.proved,
        "with": [int(inside.sum()), len(inside)],
        "without": [int(outside.sum()), len(outside)],
    }


GUESS: Final = SecretGuess(SECRET)
VIEW: Final = GameView(
    schema=SCHEMA,
    others=SCHEMA.canonical(TABLE.iloc[1:]),
    target=SCHEMA.canonical(TABLE.iloc[:1]),
    n_rows=len(TABLE),
    neighbours=Neighbours.ADD_REMOVE,
)


def _features(generator: Any, is_in: bool, rng: np.random.Generator) -> FloatArray:
    data = TABLE if is_in else TABLE.iloc[1:]
    model = generator.fit(data, seed=int(rng.integers(2**31)))
    return _features_of(tuple(model.yes.tolist()))


@cache
def _features_of(yes: tuple[bool, ...]) -> FloatArray:
    """The features of a release, of which there are 256 only."""
    release = Answers(yes=np.array(yes)).sample(len(TABLE), seed=0)
    return GUESS.features(SCHEMA.canonical(release), VIEW)


def _rows(out: Path) -> Iterator[Sequence[object]]:
    for name, kind in PARTS.items():
        path = out / f"{name}.json"
        if not path.exists():
            continue
        audits, truth = json.loads(path.read_text())["audits"], kind.epsilon
        shares = (
            sum(audit[world][0] for audit in audits) / sum(audit[world][1] for audit in audits)
            for world in ("with", "without")
        )
        yield (
            kind.asks,
            "none" if truth is None else truth,
            kind.models,
            len(audits),
            *(f"{100 * share:.1f} %" for share in shares),
            markdown.number(mean(audit["proved"] for audit in audits)),
            "" if truth is None else sum(audit["proved"] > truth for audit in audits),
        )


if __name__ == "__main__":
    start(main)
