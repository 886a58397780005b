"""Options of a replay, and what findings say together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dpaudit.errors import SettingsError
from dpaudit.replaying.findings import (
    Options,
    ProofKind,
    ReplayAccess,
    ReplayFindings,
    internal_line,
)
from dpaudit.replaying.laws import Laplace
from dpaudit.replaying.transcript import Parting, PartKind, Transcript
from steps import noisy_step, site_of, transcript_of

LAW = Laplace(1.0)


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("lib.py:88", "lib.py:88", ""),
        ("lib.py:88: a log", "lib.py:88", "a log"),
        ("lib.py:88:a log: of 3", "lib.py:88", "a log: of 3"),
    ],
)
def test_an_internal_line_is_a_place_and_a_reason(text: str, place: str, why: str) -> None:
    assert internal_line(text) == (place, why)


@pytest.mark.parametrize("text", ["lib.py", "lib.py:x", "", ":3"])
def test_other_internal_lines_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="FILE:LINE"):
        internal_line(text)


def test_lines_are_compared_by_file_and_number() -> None:
    options = Options(internal=(internal_line("lib.py:88: a log"), internal_line("a.py:1")))
    assert options.internal_lines == {("lib.py", 88), ("a.py", 1)}


def test_a_given_proof_wins_over_a_stated_one() -> None:
    states = SimpleNamespace(proof="composition")
    assert Options().with_proof_of(states).proof is ProofKind.COMPOSITION
    assert Options().with_proof_of(object()).proof is None
    given = Options(proof=ProofKind.COMPOSITION)
    assert given.with_proof_of(SimpleNamespace(proof=None)) is given
    with pytest.raises(SettingsError, match="`proof` is 'magic'"):
        Options().with_proof_of(SimpleNamespace(proof="magic"))
    assert ReplayAccess.of("rows") is ReplayAccess.ROWS


def found_of(*steps: Any, **others: Any) -> ReplayFindings:
    return ReplayFindings(pilots=[transcript_of(*steps, **others)])


def test_seeds_of_lines_that_move_are_judged() -> None:
    found = found_of(
        noisy_step(1, 0, LAW, line=1),
        noisy_step(1, 0, LAW, line=2),
        noisy_step(1, 0, LAW, line=3),
        noisy_step(0, 0, LAW, line=4),
    )
    found.take_seeds(
        {
            site_of(1): {"7": {1, 2, 3}},
            site_of(2): {"a": {1}, "b": {2, 3}},
            site_of(3): {"a": {1}, "b": {2}, "c": {3}},
            site_of(4): {"7": {1, 2, 3}},  # it protects nothing
        }
    )
    assert found.fixed_seeds == (site_of(1),)
    assert found.few_seeds == (site_of(2),)


def test_a_seed_that_one_fit_has_shown_is_not_fixed() -> None:
    found = found_of(noisy_step(1, 0, LAW))
    found.take_seeds({site_of(1): {"7": {1}}})
    assert (found.fixed_seeds, found.few_seeds) == ((), ())


def test_noise_is_fresh_if_it_is_drawn_for_the_record_after_the_fit() -> None:
    of_fit, still, late = (
        noisy_step(1, 0, LAW, line=1, first=0),
        noisy_step(0, 0, LAW, line=2, first=5),
        noisy_step(1, 0, LAW, line=3, first=6),
    )
    assert found_of(of_fit, still, late, sampled_from=5).fresh_noise == (site_of(3),)
    assert found_of(of_fit, still, sampled_from=5).fresh_noise == ()


def test_what_differs_is_stored_unless_the_rows_part_or_it_differs_by_itself() -> None:
    def add(places: dict[str, str], without: frozenset[str] = frozenset()) -> ReplayFindings:
        pair = [
            SimpleNamespace(digests=one, generators=("model.rng",), left_out=("model.lock",))
            for one in (places, dict.fromkeys(places, "other"))
        ]
        fits: Any = SimpleNamespace(release_of=lambda _, world: pair[world == "out"])
        found = ReplayFindings(without=without)
        found.add(fits, Transcript())
        return found

    stored = add({"model.log": "a"})
    assert list(stored.stored) == ["model.log"]
    assert list(stored.generators) == ["model.rng"]
    assert list(stored.left_out) == ["model.lock"]
    assert stored.parting is None
    assert not add({"model.at": "a"}, frozenset({"model.at"})).stored
    rows = add({"model.log": "a", "87 rows": "b"})
    assert rows.parting == Parting(
        kind=PartKind.ROWS, sites=(None, None), values=("87 rows differ", "")
    )
    assert len(rows.partings) == 1
    assert not rows.stored
