from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dpaudit.formatting import percent
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.released_data import linkage as module
from dpaudit.released_data.anonymeter.run import AnonymeterFinding
from dpaudit.released_data.copies import ClosestDistances
from dpaudit.released_data.linkage import Linkage, find_linkage
from dpaudit.released_data.report import NO_HOLDOUT, linkage_blocks
from dpaudit.released_data.tables import ReleasedTables, load_released
from dpaudit.results.structure import Block

SCHEMA = Schema(
    columns=(
        *(Column(name=n, kind=Kind.CONTINUOUS, lower=-9.0, upper=9.0) for n in ("a", "b", "c")),
        Column(name="a very long name of a category", kind=Kind.BINARY, categories=("no", "yes")),
    )
)
N = 600


def table(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(rng.normal(size=(N, 3)).round(4), columns=list("abc"))
    found["a very long name of a category"] = rng.choice(["no", "yes"], N)
    return found


def tables(synthetic: pd.DataFrame, *, holdout: bool = True) -> ReleasedTables:
    return load_released(table(1), synthetic, table(2) if holdout else None, schema=SCHEMA)


def copying(share: float) -> pd.DataFrame:
    synthetic, rows = table(3), int(share * N)
    synthetic.iloc[:rows] = table(1).iloc[100 : 100 + rows].to_numpy()
    return SCHEMA.canonical(synthetic)


def linkage(of: ReleasedTables, members: range = range(N)) -> Linkage:
    return find_linkage(of, members=np.asarray(members), seed=0, confidence=0.95)


def test_a_memoriser_is_proved_while_the_distance_panel_passes() -> None:
    found = linkage(tables(copying(0.05)))
    copies, *others = found.proved
    least = found.copies.exact.records.at_least
    assert copies.startswith(f"at least {least} of 600 training rows stand in the synthetic table")
    assert "value for value" in copies
    assert any("repeats values that only one training row has: " in one for one in others)
    assert found.panel.passes
    assert found.copies.synthetic.found == len(range(100, 130))
    assert set(found.copies.riskiest) <= set(range(100, 130))
    assert linkage(tables(copying(0.05))) == found


def test_another_sample_of_the_population_proves_nothing() -> None:
    found = linkage(tables(table(3)))
    assert found.proved == ()
    assert found.panel.passes


def test_near_copies_are_counted_by_the_distances_that_are_handed_on() -> None:
    apart = np.linspace(0.1, 1.0, 2 * N)
    closest = ClosestDistances(np.zeros(N), apart)
    found = find_linkage(
        tables(table(3)), members=np.arange(N), closest=closest, seed=0, confidence=0.95
    )
    assert [one.records.train.found for one in found.copies.near] == [N, N]
    assert found.copies.near[0].records.holdout is not None
    assert found.copies.near[0].records.holdout.of == N
    assert "with equal or close values" in found.proved[0]


def test_rows_without_a_coin_are_not_compared_and_keep_their_numbers() -> None:
    found = linkage(tables(copying(0.05)), range(110, N))
    assert found.members == found.copies.exact.records.train.of == N - 110
    assert found.copies.exact.records.train.found == 20
    assert min(found.copies.riskiest) >= 110


def test_without_a_holdout_everything_is_counted_and_nothing_proved() -> None:
    found = linkage(tables(copying(0.5), holdout=False))
    assert found.proved == ()
    assert found.copies.exact.records.train.found == 300
    blocks = by_title(found)
    assert NO_HOLDOUT in blocks["Copies"].paragraphs[0]
    assert len(set(found.copies.riskiest)) == 300
    named = blocks["Copies"].paragraphs[1]
    assert "Copied training rows, in their order (row 0 is the first below the header)" in named
    assert "10 of 300 are shown; all are in the output of --json, as linkage.copies.ri" in named
    assert named.count(",") == 11  # of the ten rows, and of two clauses
    assert NO_HOLDOUT in blocks["Rare"].paragraphs[0]
    for block in blocks.values():
        assert block.table is not None
        assert "-" not in {cell for row in block.table.rows for cell in row}
        assert not {"hold-out", "at least"} & set(block.table.header)


def test_without_a_holdout_guesses_are_compared_with_the_baseline() -> None:
    found = linkage(tables(copying(0.5), holdout=False))
    [block] = [one for one in linkage_blocks(found) if one.title.startswith("Guessing")]
    assert block.table is not None
    for *_, baseline, train, word in block.table.rows:
        gain = float(train.removesuffix(" %")) - float(baseline.removesuffix(" %"))
        assert word == "yes" if gain > 10 else word in ("yes", "no")
        assert gain > 0 or word == "no"
    assert block.table.header[-1] == "above baseline"  # reads well in a list of titled cells, too
    gains = [one.right.train.rate - one.baseline for one in found.inference]
    assert block.table.rows[0][3] == percent(
        round(found.inference[int(np.argmax(gains))].right.train.rate, 3)
    )


def by_title(found: Linkage) -> dict[str, Block]:
    return {one.title.split()[0]: one for one in linkage_blocks(found)}


def test_the_report_says_what_was_found() -> None:
    blocks = by_title(linkage(tables(copying(0.05))))
    assert list(blocks) == ["Copies", "Extremes", "Guessing", "Distance"]
    assert blocks["Copies"].table is not None
    assert blocks["Copies"].table.rows[0][:3] == ("exact", "30 of 600", "0 of 600")
    assert "That decides nothing here" in (blocks["Distance"].paragraphs[0])
    assert (
        "30 of 600 synthetic rows equal a training row; 30 of 600 training rows that"
        in (blocks["Copies"].paragraphs[0])
    )
    named = blocks["Copies"].paragraphs[1]
    assert "Copied training rows, the least likely by chance first (row 0 is the" in named
    assert "10 of 30 are shown; all are in the output of --json" in named
    assert blocks["Guessing"].table is not None
    assert blocks["Guessing"].table.header[3:] == ("train", "hold-out", "at least")
    for block in blocks.values():
        for row in block.table.rows if block.table else ():
            assert len("  ".join(row)) <= 74


def test_anonymeter_is_asked_for_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    one = AnonymeterFinding(
        "inference", "a very long name of a category", 500, 400, 300, 250, 0.5, 0.25, 0.75, ("odd",)
    )
    monkeypatch.setattr(module, "run_anonymeter", lambda *_, **__: (one,))
    found = find_linkage(
        tables(table(3)), members=np.arange(N), anonymeter=True, seed=0, confidence=0.95
    )
    block = by_title(found)["Singling"]
    assert block.table is not None
    assert block.table.rows[0][1:] == ("400 of 500", "300", "250", "0.50 (0.25 to 0.75)")
    assert block.items == ("inference: odd",)


def test_a_single_row_to_compare_is_enough() -> None:
    few = tables(copying(0.0))
    assert few.holdout is not None
    found = linkage(replace(few, holdout=few.holdout.head(1)))
    assert found.panel.train.ratio == 1.0
