from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import DataError, SchemaError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.released_data.tables import load_released


def table(n: int = 20, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "wage": rng.normal(size=n),
            "sex": np.array(["f", "m"])[np.arange(n) % 2],
        }
    )


SCHEMA = Schema(
    columns=(
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=120),
        Column(name="wage", kind=Kind.CONTINUOUS, lower=-10.0, upper=10.0),
        Column(name="sex", kind=Kind.BINARY, categories=("f", "m")),
    )
)


def test_tables_that_fit_are_canonical_and_warn_of_nothing() -> None:
    found = load_released(table(), table(seed=1), table(seed=2), schema=SCHEMA)
    assert found.warnings == ()
    assert found.holdout is not None
    assert [list(t.columns) for t in (found.train, found.synthetic, found.holdout)] == [
        SCHEMA.names
    ] * 3


def test_files_are_read_and_named(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    table().to_csv(path, index=False)
    found = load_released(path, table(seed=1), schema=SCHEMA)
    assert found.sources == (str(path), "a table in memory", None)
    pd.testing.assert_frame_equal(found.train, SCHEMA.canonical(table()))


@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_other_columns_are_refused_and_all_named(schema: Schema | None) -> None:
    odd = table(seed=1).rename(columns={"wage": "salary"})
    with pytest.raises(DataError) as caught:
        load_released(table(), odd, table().drop(columns="sex"), schema=schema)
    text = str(caught.value)
    assert "the synthetic table lacks column 'wage'" in text
    assert "the synthetic table has column 'salary'" in text
    assert "the holdout table lacks column 'sex'" in text


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("age", "forty", "is not a number"),
        ("wage", np.inf, "is infinite"),
    ],
)
@pytest.mark.parametrize("schema", [None, SCHEMA])
def test_values_of_a_wrong_type_are_refused(
    column: str, value: object, says: str, schema: Schema | None
) -> None:
    odd = table(seed=1).astype({column: object})
    odd.loc[3, column] = value
    with pytest.raises(DataError, match=says) as caught:
        load_released(table(), odd, table(seed=2), schema=schema)
    assert "the synthetic table" in str(caught.value)
    assert column in str(caught.value)


@pytest.mark.parametrize(
    ("column", "value"), [("age", 40.5), ("wage", None), ("sex", "male"), ("wage", 11.0)]
)
def test_what_only_the_synthetic_table_has_is_a_note(column: str, value: object) -> None:
    odd = table(seed=1).astype({column: object})
    odd.loc[3, column] = value
    for schema, whose in ((None, "the real tables lack"), (SCHEMA, "the schema rules out")):
        loaded = load_released(table(), odd, table(seed=2), schema=schema)
        note = f"the synthetic table has values that {whose} in {column}"
        assert (note in loaded.warnings) is not (schema is None and value == 11.0)
        assert loaded.synthetic[column][3] == value or pd.isna(loaded.synthetic[column][3])


def test_columns_that_are_written_in_several_ways_agree() -> None:
    days = pd.Series(pd.date_range("2020-01-01", periods=20))
    train = table().assign(day=days.dt.strftime("%d.%m.%Y"), code=[str(i) for i in range(20)])
    synthetic = table(seed=1).assign(day=days, code=np.arange(20.0))
    holdout = table(seed=2).assign(day=days.astype(str), code=range(20))
    loaded = load_released(train, synthetic, holdout)
    for of in (loaded.train, loaded.synthetic, loaded.holdout):
        assert of is not None
        assert of["day"].tolist() == [*range(18262, 18282)]
        assert of["code"].tolist() == [*range(20)]


def test_numbers_of_two_precisions_agree() -> None:
    real = table().astype({"wage": np.float32})
    loaded = load_released(real, table(), table(seed=2))
    assert loaded.train["wage"].equals(loaded.synthetic["wage"])


@pytest.mark.parametrize(
    ("column", "values"),
    [("day", np.arange(43831, 43851)), ("sex", ["female", "male"] * 10), ("day", None)],
)
def test_a_column_that_is_written_in_another_way_is_a_warning(column: str, values: Any) -> None:
    days = pd.Series(pd.date_range("2020-01-01", periods=20))
    tables = [table(seed=seed).assign(day=days) for seed in range(3)]
    if values is not None:
        tables[1][column] = values
    warned = [text for text in load_released(*tables).warnings if "write these columns" in text]
    assert [f"in {column}: write" in text for text in warned] == [True] * (values is not None)


def test_a_category_of_the_holdout_alone_is_one_of_the_population() -> None:
    holdout = table(seed=2)
    holdout.loc[0, "sex"] = "x"
    found = load_released(table(), table(seed=1), holdout)
    assert found.schema.columns[2].categories == ("f", "m", "x")
    assert any("no public schema was given" in warning for warning in found.warnings)


def test_a_whole_number_beside_two_codes_is_a_note_and_no_refusal() -> None:
    train, drawn = table().assign(code=[0, 1] * 10), table(seed=1).assign(code=[0, 2] * 10)
    found = load_released(train, drawn)
    assert found.schema.columns[-1].categories == (0, 1, 2)
    assert any("has values that the real tables lack in code" in note for note in found.warnings)


def test_another_order_of_columns_is_a_warning() -> None:
    turned = table(seed=1)[["sex", "age", "wage"]]
    found = load_released(table(), turned, schema=SCHEMA)
    assert found.warnings == (
        "the synthetic table has its columns in another order: they were sorted",
    )
    assert list(found.synthetic.columns) == SCHEMA.names


def test_rows_in_train_and_holdout_are_counted() -> None:
    holdout = pd.concat([table(seed=2), table()[:3]])
    found = load_released(table(), table(seed=1), holdout, schema=SCHEMA)
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("3 of 23 hold-out rows are also in train")


def test_a_table_of_one_row_is_refused() -> None:
    with pytest.raises(DataError, match="the holdout table has too few rows"):
        load_released(table(), table(), table(1), schema=SCHEMA)


def test_a_holdout_that_is_train_is_refused() -> None:
    again = table().sample(frac=1.0, random_state=1)
    with pytest.raises(DataError, match="the holdout table has the rows of train"):
        load_released(table(), table(seed=1), again, schema=SCHEMA)


def test_one_file_in_two_places_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    table().to_csv(file, index=False)
    with pytest.raises(DataError, match="one file is given twice"):
        load_released(file, tmp_path / "." / "t.csv", schema=SCHEMA)


@pytest.mark.parametrize("shuffled", [False, True])
def test_identifiers_are_set_aside_and_hide_no_copies(shuffled: bool) -> None:
    ids = pd.Series(range(100), name="id").sample(frac=1.0, random_state=0 if shuffled else None)
    train = table(100).assign(id=np.sort(ids) if not shuffled else ids.to_numpy())
    holdout = table(100, seed=1).assign(id=train["id"] + 5000)
    for given in (None, holdout):
        loaded = load_released(train, train.assign(id=train["id"] + 900), given)
        assert loaded.train.equals(loaded.synthetic)
        assert any("set aside" in warning for warning in loaded.warnings)


def test_columns_are_dropped_from_all_tables() -> None:
    train = table().assign(note=[f"note {i}" for i in range(20)])
    loaded = load_released(train, table(seed=1), table(seed=2).assign(x=0), drop=["note", "x"])
    assert loaded.schema.names == list(table().columns)
    with pytest.raises(DataError, match=r"no table has a column 'nota' \(did you mean 'note'"):
        load_released(train, table(seed=1), drop=["nota"])
    with pytest.raises(DataError, match="the schema has the column 'age'"):
        load_released(table(), table(seed=1), schema=SCHEMA, drop=["age"])


def test_few_distinct_rows_are_a_warning_and_may_be_those_of_train_by_chance() -> None:
    one = pd.concat([table()[:1]] * 20)
    found = load_released(table(), one, schema=SCHEMA)
    assert found.warnings == ("only 1 of 20 rows of the synthetic table are distinct",)
    assert load_released(one, table(), one, schema=SCHEMA).holdout is not None


def test_what_cannot_be_inferred_names_the_table() -> None:
    odd = table()
    odd.loc[3, "wage"] = np.inf
    with pytest.raises(SchemaError, match="the train table: column 'wage' holds infinite values"):
        load_released(odd, table())
    with pytest.raises(SchemaError, match="train and holdout tables together: column 'wage'"):
        load_released(table(), table(), odd)
