"""Searches: planted defects shrunk to pairs that one reads at a glance, and honest twins."""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.errors import MissingExtraError, ReplayError, SchemaError, SettingsError
from dpaudit.results.verdict import Verdict
from dpaudit.searching.examine import FindingKind
from dpaudit.searching.record import SearchRecord, search_page
from reports.search.planted import SCHEMA, Released, Synthesizer
from reports.search.reported import REPORTED, ReportedSynthesizer

pytestmark = pytest.mark.usefixtures("worlds")


def searched(generator: Any, **settings: Any) -> SearchRecord:
    """A search of few pairs."""
    asked = {"seconds": 60.0, "pairs": 25, "fits": 24, **settings}
    return dpaudit.search(generator, SCHEMA, **asked)


class TestPlanted:
    def test_a_counter_that_wraps_is_found_with_as_many_rows_as_it_takes(
        self, tmp_path: Path
    ) -> None:
        record = searched(Synthesizer("byte"), out=tmp_path, pairs=40)
        worst = record.findings[0]
        assert worst.kind is FindingKind.OVERSPENT
        assert worst.place.startswith("planted.py:")
        assert worst.spent == pytest.approx(255)
        assert [row[::2] for row in worst.rows] == [(127, "both"), (1, "with")]
        assert record.verdict in (Verdict.OVERSPENT, Verdict.VIOLATION)
        written = [pd.read_csv(tmp_path / f"pair-1-{name}.csv") for name in ("with", "without")]
        assert [len(table) for table in written] == [128, 127]
        with pytest.raises(AssertionError, match="255"):
            record.assert_no_violation()

    def test_a_sensitivity_that_is_too_small_is_found_with_a_record_alone(self) -> None:
        worst = searched(Synthesizer("bound")).findings[0]
        assert worst.spent == pytest.approx(1.1)
        assert [row.values[1:] for row in worst.rows if row.table == "with"] == [(1, 10.0)]

    def test_a_failure_with_one_table_alone_is_a_finding(self) -> None:
        record = searched(Synthesizer("empty"), records=0)
        assert record.findings[0].kind is FindingKind.FAILURE
        assert "ValueError at planted.py:" in record.findings[0].place
        assert record.verdict is Verdict.INCONCLUSIVE
        assert record.failed

    def test_numbers_without_noise_are_named(self) -> None:
        record = searched(Synthesizer("large"), pairs=12, fits=60)
        assert (record.findings[0].kind, record.findings[0].place) == (
            FindingKind.STORED,
            "model.numbers",
        )
        assert record.verdict is Verdict.VIOLATION

    @pytest.mark.ci
    def test_a_key_that_only_one_table_has_is_shown_and_spends_without_limit(self) -> None:
        worst = searched(Synthesizer("keys"), pairs=20).findings[0]
        assert worst.kind is FindingKind.OVERSPENT
        assert worst.place.startswith("planted.py:")
        assert worst.spent is None

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["budget", "pairs", "shrinks", "batch", "top", "copies"])
    def test_other_defects_spend_more_than_the_claim(self, name: str) -> None:
        assert searched(Synthesizer(name), pairs=300).findings[0].kind is FindingKind.OVERSPENT

    def test_a_missing_value_that_spoils_a_sum_is_found_though_both_fits_fail_of_it(self) -> None:
        record = dpaudit.search(
            ReportedSynthesizer("nan"), REPORTED["nan"].schema, seconds=60.0, pairs=25, records=0
        )
        worst = record.findings[0]
        assert (worst.kind, worst.spent) == (FindingKind.OVERSPENT, None)
        assert [row.values for row in worst.rows if row.table == "with"] == [(None,)]
        assert "the generator fails" in worst.said

    def test_an_honest_twin_is_consistent(self) -> None:
        record = searched(Synthesizer("byte", honest=True))
        assert record.verdict is Verdict.CONSISTENT
        assert record.findings == ()
        assert record.unconfirmed == ()
        assert record.costliest is not None
        assert record.costliest.spent == pytest.approx(1)
        record.assert_no_violation()


class TestDocuments:
    def test_a_record_is_read_as_it_was_written_and_has_a_page(self, tmp_path: Path) -> None:
        record = searched(Synthesizer("copies"), pairs=20)
        path = tmp_path / "search.json"
        path.write_text(record.to_json())
        assert SearchRecord.load(path) == record
        assert "<- the record" in str(record)
        assert max(len(line) for line in str(record).splitlines() if "dpaudit " not in line) <= 80
        assert search_page(record).verdict is record.verdict

    @pytest.mark.ci
    def test_a_search_repeats_under_its_seed(self) -> None:
        first, second = (searched(Synthesizer("keys"), pairs=12, seed=3) for _ in range(2))
        assert first.findings == second.findings


class LooksAtTheClock:
    """Answers with noise, and a number that is another one in each fit of the same seed."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        own = float(time.perf_counter_ns() % 1000)
        return Released(np.array([own, len(data) + np.random.default_rng(seed).laplace()]))


class Fails:
    """Fails whatever it is given."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        raise ValueError("always")


class NeedsRows:
    """Refuses fewer than 100 rows."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        if len(data) < 100:
            raise ValueError("too few")
        return Synthesizer("byte", honest=True).fit(data, seed=seed)


class EndsItsProcess:
    """Kills its process where a table has certain numbers of distinct records; counts copies twice.

    Of the first pairs, two have three to five and two have more; many drawn pairs have three to
    five, whatever constants Hypothesis takes from the modules that are loaded.
    """

    def __init__(self, *, distinct: range) -> None:
        self.distinct = distinct

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        if len(data.drop_duplicates()) in self.distinct:
            os._exit(3)
        return Synthesizer("copies").fit(data, seed=seed)


class AlwaysEndsItsProcess:
    """Kills its process whatever it is given."""

    def fit(self, data: pd.DataFrame, *, seed: int) -> Released:
        os._exit(3)


class TestWrongInput:
    def test_without_hypothesis_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [name for name in sys.modules if name.startswith("dpaudit.searching")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"pip install .*\[search\]"):
            importlib.import_module("dpaudit.searching.run")

    def test_code_that_always_ends_its_process_is_refused(self) -> None:
        with pytest.raises(ReplayError, match="ended"):
            searched(AlwaysEndsItsProcess(), epsilon=1)

    @pytest.mark.ci
    @pytest.mark.parametrize(
        "distinct", [pytest.param(range(6, 1000), marks=pytest.mark.slow), range(3, 6)]
    )
    def test_what_was_found_stays_when_a_pair_ends_the_process(self, distinct: range) -> None:
        generator = EndsItsProcess(distinct=distinct)
        record = searched(generator, epsilon=1, pairs=40, seconds=600.0)
        assert record.ended
        assert "ended" in record.end
        assert record.findings[0].kind is FindingKind.OVERSPENT

    def test_tables_are_not_for_a_search(self) -> None:
        with pytest.raises(SettingsError, match="leave out `data`, `target`"):
            searched(Synthesizer("byte"), data="x.csv", target="row:1")

    def test_an_inferred_schema_is_refused(self) -> None:
        data = pd.DataFrame({"a": [0, 1, 2, 1], "x": [0.5, 1.0, 2.0, 3.0]})
        with pytest.raises(SchemaError, match="public schema"):
            dpaudit.search(Synthesizer("byte"), dpaudit.Schema.infer(data), epsilon=1)

    def test_code_that_needs_more_rows_is_told_how(self) -> None:
        with pytest.raises(ReplayError, match="if it needs more, give `records`"):
            searched(Fails(), epsilon=1)
        record = searched(NeedsRows(), epsilon=1, records=100, pairs=12)
        assert record.verdict is Verdict.CONSISTENT

    def test_code_that_does_not_repeat_is_refused(self) -> None:
        with pytest.raises(ReplayError, match="not repeatable"):
            searched(LooksAtTheClock(), epsilon=1)

    def test_a_claim_is_needed(self) -> None:
        with pytest.raises(dpaudit.InputError, match="claim"):
            searched(NeedsRows(), records=100)
