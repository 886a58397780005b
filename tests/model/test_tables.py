"""Reading tables and schema files: what is refused says why, what is read is read rightly."""

from __future__ import annotations

import builtins
import datetime
import decimal
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from dpaudit.auditing.games import audit_settings, audited_table, build_spec
from dpaudit.errors import DataError, InputError, MissingExtraError, SchemaError
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import decode, encode
from dpaudit.model.linked_files import load_given
from dpaudit.model.schema import Schema
from dpaudit.model.table_files import csv_written
from dpaudit.model.tables import data_digest, fitting, load, load_schema, load_table
from dpaudit.plugins.release import accept
from dpaudit.released_data.tables import load_released

GOOD = "a,b\n" + "".join(f"{i},{3 * i}\n" for i in range(2000))


def corrupt(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes(255 - b for b in data[middle : middle + 4]) + data[middle + 4 :]


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(error: type[InputError], path: str | Path) -> str:
    with pytest.raises(error) as caught:
        load_table(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.csv", "", "it is empty"),
        ("blank.csv", "\n \n", "it is empty"),
        ("commas.csv", ",,\n1,2,3\n", "header names no columns"),
        ("header.csv", "a,b\n", "no rows below its header: give a table with records"),
        ("object.csv", json.dumps({"a": [1, 2]}), "JSON"),
        ("pretty.csv", json.dumps({"a": [1, 2]}, indent=1), "JSON"),
        ("list.csv", "[\n1,\n2\n]", "JSON"),
        ("page.csv", "<!doctype html>\n<p>404\n", "HTML"),
        ("mixed.csv", "a,b\ncafé,1\n".encode() + b"caf\xe9,2\n", "UTF-8"),
        ("image.csv", b"\x89PNG\r\n\x1a\n" + bytes(50), "UTF-8"),
        ("binary.csv", bytes(range(128)) * 9, "binary"),
        ("longer.csv", "a,b\n1,2,3\n4,5,6\n", "line 2 has 3 fields, its header 2;"),
        ("trailing.csv", "a,b\n1,2,\n4,5,\n", "line 2 has 3 fields"),
        ("ragged.csv", "a,b\n1,2\n4,5,6\n", "line 3 has 3 fields"),
        ("shorter.csv", "a,b\n1,2\n\n4\n", "line 4 has 1 field, its header 2;"),
        ("lines.csv", 'a,b\n1,"2\n2"\n4\n', "line 4 has 1 field, its header 2;"),
        ("decimal.csv", "a,b\n1,2,5\n", "values that hold the separator in double quotes"),
        ("headless.csv", "28,33.67,a\n29,30.5,b\n", "holds values, not column names"),
        ("quote.csv", 'a,b\n"1,2\n3,4\n', "line 2 has 1 field, its header 2, or a quote there"),
        ("last.csv", 'a,b\n1,"2\n3,4\n', "a quote in record 1 below its header is never closed"),
        ("book.xlsx", b"PK\x03\x04" + b"z" * 99, "not an Excel table"),
        ("semicolon.csv", "a;b\n1;2;3\n", "line 2 has 3 fields, its header 2"),
        ("tabs.csv", "a\tb\n1\n", "line 2 has 1 field, its header 2"),
        ("twice.csv", "a,b,a\n1,2,3\n", "column names repeat: a"),
        ("plain.csv.gz", GOOD, "gzip"),
        ("cut.csv.gz", gzip.compress(GOOD.encode())[:1000], "end-of-stream"),
        ("table.zip", b"PK\x03\x04" + b"z" * 99, "it is packed: unpack it first"),
        ("cut.csv.xz", b"\xfd7zXZ\0" + b"z" * 9, "not a CSV table"),
        ("corrupt.csv.gz", corrupt(gzip.compress(GOOD.encode())), "not a CSV table"),
        ("archive.zip", b"PK\x03\x04" + bytes(60), "not a CSV table"),
        ("text.parquet", "a,b\n1,2\n", "not a Parquet table"),
        ("empty.parquet", "", "not a Parquet table"),
    ],
)
def test_what_is_not_a_table_is_refused(
    tmp_path: Path, name: str, content: str | bytes, says: str
) -> None:
    assert says in refused(DataError, written(tmp_path, name, content))


@pytest.mark.parametrize(
    "content",
    [
        "28,7.77123,SECRET\n29,30.5,b\n",
        '{"SECRET": 7.77123}\n',
        "SECRET;7.77123;1\nx;1;2\n",
        "age,town\n1,a\n7.77123,a\n",
        "age,town\n1,a\n777123,a\n",
        "age,town\n1,a\nSECRET,a\n",
        "age,town\n1,a\n2,SECRET\n",
        "age,town\nSECRET,a\nSECRET,a\n",
    ],
)
def test_no_message_about_a_table_quotes_a_cell(tmp_path: Path, content: str) -> None:
    """Messages end up in the logs of CI, and tables are private."""
    schema = Schema(
        columns=(
            Column(name="age", kind=Kind.INTEGER, lower=0, upper=99),
            Column(name="town", kind=Kind.CATEGORICAL, categories=("a", "b")),
        )
    )
    path = written(tmp_path, "table.csv", content)
    with pytest.raises(InputError) as caught:
        load(path, schema)
    assert not re.search("SECRET|77123", str(caught.value))
    if content.endswith("SECRET,a\nSECRET,a\n"):
        with pytest.raises(InputError, match="column 'age' is constant") as caught:
            load(path, None)
        assert "SECRET" not in str(caught.value)


def test_missing_files_folders_and_unknown_samples(tmp_path: Path) -> None:
    assert "does not exist" in refused(DataError, tmp_path / "none.csv")
    assert "is a folder" in refused(DataError, tmp_path)
    with pytest.raises(DataError, match=r"no sample 'brest-cancer'.*did you mean 'breast-cancer'"):
        load_table("sample:brest-cancer")


def test_reads_a_sample_as_scikit_learn_does() -> None:
    data = load_table("sample:breast-cancer")
    assert data.shape == (569, 31)
    theirs = load_breast_cancer(as_frame=True).frame.rename(columns={"target": "benign"})
    pd.testing.assert_frame_equal(data, theirs, check_exact=True)
    assert fitting(data, Schema.infer(data, label="benign"), source="it").shape == (569, 31)


def test_a_sample_has_a_public_schema_that_is_not_its_extremes() -> None:
    table = load("sample:breast-cancer", None)
    assert (table.schema.inferred, table.schema.label) == (False, "benign")
    assert table.schema_source is None
    for column in table.schema.columns[:-1]:
        values = table.data[column.name]
        assert column.lower == 0 < column.upper
        assert values.max() < 0.9 * column.upper, column.name  # not read off the table
    given = load("sample:breast-cancer", Schema.infer(table.data))
    assert given.schema.inferred  # one that is given counts
    assert load(table.data, None).schema.inferred


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([f"{i}.5{'%$'[i % 2]}" for i in range(40)], "or dates as text that cannot be read"),
        (
            [*pd.Series(pd.date_range("1999-12-25", periods=60)).astype(str), "total"],
            "is text because of row 60, else dates: correct it",
        ),
        ([*range(40), "unknown"], "is text because of row 40, else numbers"),
        ([f"p{i}" for i in range(40)], "40 distinct texts in 40 rows"),
        (list(range(100, 150)), "numbers the rows"),
        ([7 * i % 60 for i in range(60)], "numbers the rows"),  # in no order
        ([10**25 + i % 2 for i in range(40)], "beyond 2**53, which are not exact"),
    ],
)
def test_a_column_that_is_no_kind_is_refused_with_its_file(
    tmp_path: Path, values: list[object], says: str
) -> None:
    pd.DataFrame({"bad": values}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(SchemaError) as caught:
        load(tmp_path / "t.csv", None)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 't.csv'}: column 'bad' ")
    assert says in message


TEN: Any = {
    "who": [f"Nr. {i}" for i in range(60)],
    "always": [7] * 60,
    "gone": [None] * 60,
    "city": ["Zürich", "Köln"] * 30,
}
AMOUNTS = np.round(np.random.default_rng(3).uniform(1000, 99000, 60), 2)
DAYS = pd.Series(pd.date_range("1999-12-25", periods=60, freq="D"))


def german(amount: float) -> str:
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))


@pytest.mark.parametrize(
    ("name", "options", "amounts", "days"),
    [
        ("a.csv", {}, AMOUNTS, DAYS.astype(str)),
        ("b.csv", {"sep": ";", "encoding": "cp1252"}, map(german, AMOUNTS), "%d.%m.%Y"),
        ("c.csv", {"sep": "\t", "encoding": "utf-16"}, map(german, AMOUNTS), "%d.%m.%Y"),
        ("d.csv", {}, [f"{amount:,.2f}" for amount in AMOUNTS], "%m/%d/%Y"),
        ("e.csv", {"sep": "|"}, [str(a).replace(".", ",") for a in AMOUNTS], "%Y-%m-%d"),
        ("f.csv.gz", {"sep": ";"}, map(german, AMOUNTS), "%Y-%m-%d"),
        ("g.parquet", {}, [decimal.Decimal(str(a)) for a in AMOUNTS], DAYS.dt.date),
        ("h.parquet", {}, AMOUNTS, DAYS.dt.tz_localize("UTC")),
        ("i.xlsx", {}, AMOUNTS, DAYS),
        ("j.feather", {}, AMOUNTS, DAYS),
        ("l.csv.bz2", {"sep": ";"}, [f"{german(amount)} €" for amount in AMOUNTS], "%d.%m.%y"),
        ("m.csv.xz", {}, [f"${amount:,.2f}" for amount in AMOUNTS], "%m/%d/%Y %I:%M %p"),
        ("k.csv", {}, AMOUNTS, "%d-%b-%Y"),
    ],
)
def test_files_of_offices_are_read_alike(
    tmp_path: Path, name: str, options: Any, amounts: Any, days: Any, caplog: Any
) -> None:
    path = tmp_path / name
    written = DAYS.dt.strftime(days) if isinstance(days, str) else days
    table = pd.DataFrame({**TEN, "amount": list(amounts), "day": written})
    if name.endswith(".parquet"):
        table.to_parquet(path, index=False)
    elif name.endswith(".xlsx"):
        table.to_excel(path, index=False)
    elif name.endswith(".feather"):
        table.to_feather(path)
    else:
        table.to_csv(path, index=False, **options)
    loaded = load(path, None)
    assert loaded.schema.names == ["city", "amount", "day"]
    assert loaded.schema.columns[0].categories == ("Köln", "Zürich")
    assert loaded.data["amount"].tolist() == AMOUNTS.tolist()
    day = loaded.schema.columns[2].to_document()
    assert (day["kind"], day["lower"], day["upper"]) == ("date", "1999-12-25", "2000-02-22")
    assert loaded.data["day"].tolist() == [*range(10950, 11010)]
    given = loaded.schema.handed(loaded.data)["day"]
    if isinstance(days, str):
        assert given.tolist() == written.tolist()
    else:
        assert pd.to_datetime(given, utc=True).dt.tz_localize(None).tolist() == DAYS.tolist()
    assert Schema.from_document(loaded.schema.to_document()) == loaded.schema
    assert loaded.schema.canonical(loaded.schema.handed(loaded.data)).equals(loaded.data)
    aside = [text for text in caplog.messages if "set aside" in text]
    assert len(aside) == 1
    assert all(f"'{name}'" in aside[0] for name in ("who", "always", "gone"))


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1.009", "988"], [1009, 988]),
        (["1,009", "988"], [1009, 988]),
        (["12.345.678", "9"], [12345678, 9]),
        (["1,5", "0,988"], [1.5, 0.988]),
        (["0.988", "1"], [0.988, 1]),
        (["988.000", "1.009"], [988, 1.009]),
        (["83,9%", "-5 %"], [0.839, -0.05]),
        (["EUR 1.000", "EUR 7"], [1000, 7]),
        (["12,50-", "3,00"], [-12.5, 3]),
        (["(5,5)", "6"], [-5.5, 6]),
        (["\u22125,5", "6"], [-5.5, 6]),
        (["1,5E+03", "2,0E-01"], [1500, 0.2]),
        (["18:00", "00:36"], [0.75, 0.025]),
    ],
)
def test_numbers_are_read_as_offices_write_them(
    tmp_path: Path, texts: list[str], numbers: list[float]
) -> None:
    path = written(tmp_path, "t.csv", "n;m\n" + "".join(f"{text};a\n" for text in texts))
    assert load_table(path)["n"].tolist() == numbers


@pytest.mark.parametrize("texts", [["5 €", "6 $"], ["5%", "6"], ["A12", "A13"], ["1-2", "1-3"]])
def test_texts_with_several_units_or_none_stay_text(tmp_path: Path, texts: list[str]) -> None:
    path = written(tmp_path, "t.csv", "n;m\n" + "".join(f"{text};a\n" for text in texts))
    assert load_table(path)["n"].tolist() == texts


@pytest.mark.parametrize(
    "above",
    ["sep=;\n", "Patients of 2024\n\n", "Patients;;\n;;\n", "# by SAP, June\n", 'a "b\nc"\n'],
)
def test_lines_above_a_header_are_left_out(
    tmp_path: Path, above: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "dpaudit")
    rows = "".join(f"{n};x{n % 3};{n % 2}\n" for n in range(80))
    path = written(tmp_path, "t.csv", f"{above}n;code;k\n{rows}")
    table = load_table(path)
    assert table.columns.tolist() == ["n", "code", "k"]
    assert table["n"].tolist() == [*range(80)]
    assert "what stands above is left out" in caplog.text
    assert load_table(path, unchanged=True)["code"].tolist() == [f"x{n % 3}" for n in range(80)]


def test_a_workbook_may_have_a_title_and_empty_rows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "dpaudit")
    day, empty = pd.Timestamp("2020-02-01"), [None] * 4
    rows: list[list[Any]] = [["Patients", None, None, None], empty, ["zip", "day", "n", "at"]]
    for n in range(30):
        rows += [[f"0{n % 5}", day, n % 7, datetime.time(6)], empty]
    pd.DataFrame(rows).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    table = load_table(tmp_path / "t.xlsx")
    assert table.columns.tolist() == ["zip", "day", "n", "at"]
    assert table["n"].tolist() == [n % 7 for n in range(30)]
    assert table["at"].tolist() == [0.25] * 30
    assert "its header is in row 3" in caplog.text
    assert "29 empty rows are left out" in caplog.text
    own = load_table(tmp_path / "t.xlsx", unchanged=True)
    assert own.head(1).to_csv(index=False) == "zip,day,n,at\n00,2020-02-01,0,06:00:00\n"


def test_a_named_index_of_parquet_is_a_column_and_times_are_days(tmp_path: Path) -> None:
    table = pd.DataFrame({"zip": ["01", "02"], "at": [datetime.time(6), None]}).set_index("zip")
    table.to_parquet(tmp_path / "t.parquet")
    loaded = load_table(tmp_path / "t.parquet")
    assert loaded["zip"].tolist() == ["01", "02"]
    assert loaded["at"].fillna(-1).tolist() == [0.25, -1]
    loaded.to_stata(tmp_path / "t.dta", write_index=False)
    assert load_table(tmp_path / "t.dta").equals(loaded)


def test_dates_with_times_zones_and_gaps_are_days(tmp_path: Path) -> None:
    texts = ["2020-01-01T12:00:00", "2020-01-02T12:00:00+02:00", None, "2020-01-04T00:00:00Z"]
    spans = pd.to_timedelta([12, 36, 48, 60], unit="h")
    path = tmp_path / "t.csv"
    pd.DataFrame({"at": texts, "span": spans}).to_csv(path, index=False)
    table = load(path, None)
    at, span = table.schema.columns
    assert (at.kind, at.missing, at.to_document()["kind"]) == (Kind.CONTINUOUS, True, "datetime")
    seconds = [18262.5, 18263 + 10 / 24, np.nan, 18265.0]
    np.testing.assert_allclose(table.data["at"], seconds, rtol=0, atol=1e-9)
    assert table.data["span"].tolist() == [0.5, 1.5, 2.0, 2.5]
    assert span.date == ""
    early = pd.DataFrame({"at": pd.to_datetime(["2019-12-31 23:59:59"]), "span": [1.0]})
    [problem] = table.schema.problems(early)
    assert problem.startswith("column 'at': ")
    assert "outside the bounds [2020-01-01T12:00:00, 2020-01-04]" in problem


HOURS = pd.Series(pd.date_range("2024-03-30 22:30", periods=9, freq="7h"))
IN_UTC = HOURS.dt.tz_localize("UTC")
MIXED_OFFSETS = [
    f"{at.tz_convert(zone):%Y-%m-%dT%H:%M:%S%z}"
    for at, zone in zip(IN_UTC, ["UTC", "Europe/Berlin", "Asia/Kolkata"] * 3, strict=True)
]


@pytest.mark.parametrize(
    ("at", "form", "given"),
    [
        (HOURS, "timestamp", HOURS),
        (IN_UTC.dt.tz_convert("Europe/Berlin"), "timestamp Europe/Berlin", None),
        (IN_UTC.dt.tz_convert("UTC-03:30"), "timestamp UTC-03:30", None),
        (HOURS.dt.strftime("%Y-%m-%dT%H:%M:%S+05:30"), "ISO8601 UTC+05:30", None),
        (MIXED_OFFSETS, "ISO8601 UTC", [at.isoformat() for at in IN_UTC]),
    ],
)
def test_a_generator_gets_dates_in_their_zone_and_gives_them_in_any(
    tmp_path: Path, at: Any, form: str, given: Any
) -> None:
    is_text = form.startswith("ISO8601")
    path = tmp_path / ("t.csv" if is_text else "t.parquet")
    table = pd.DataFrame({"at": at, "x": [0, 1, 2] * 3})
    table.to_csv(path, index=False) if is_text else table.to_parquet(path, index=False)
    loaded = load(path, None)
    schema = Schema.from_document(loaded.schema.to_document())
    assert schema == loaded.schema
    assert schema.columns[0].date == form
    handed = schema.handed(loaded.data)
    assert handed["at"].tolist() == list(at if given is None else given)
    stamps = pd.to_datetime(handed["at"], utc=True)
    for released in (handed["at"], stamps, stamps.dt.tz_convert("Asia/Tokyo"), stamps.astype(str)):
        release = accept(handed.assign(at=released), schema, n_rows=9)
        assert release.equals(loaded.data)
    train, synthetic = (loaded.data["at"], pd.DataFrame({"at": stamps, "x": table["x"]}))
    tables = load_released(path, synthetic)
    assert tables.train["at"].tolist() == tables.synthetic["at"].tolist() == train.tolist()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lower": 3}, "`lower` must be a date such as 2020-12-31"),
        ({"upper": "soon"}, "`upper` must be a date such as 2020-12-31, got 'soon'"),
        ({"format": "day"}, "`format` must be"),
        ({"format": "timestamp Mars/Base"}, "`format` must be"),
        ({"upper": "1999-01-01"}, "must be below"),
        ({"words": []}, "unknown keys words"),
    ],
)
def test_schemas_of_dates_are_checked(change: dict[str, Any], says: str) -> None:
    day = {"name": "day", "kind": "date", "lower": "2000-01-01", "upper": "2020-12-31"}
    assert Schema.from_document({"columns": [day]}).columns[0].bounds == (10957.0, 18627.0)
    with pytest.raises(SchemaError, match=re.escape(says)):
        Schema.from_document({"columns": [{**day, **change}]})


def test_a_table_in_memory_may_number_its_rows() -> None:
    data = pd.DataFrame({"number": range(60), "b": [0, 1] * 30})
    assert load(data, None).schema.columns[0].upper == 59


def test_what_only_resembles_a_bad_column_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {
        "few texts": [f"1-{i % 15}" for i in range(400)],
        "codes": [f"{'V' if i % 40 % 3 else ''}{i % 40}" for i in range(400)],
        "repeats": np.arange(400) // 2,
        "wide": rng.integers(0, 10**9, 400),
        "sorted": np.sort(rng.normal(size=400)),
    }
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    kinds = [column.kind.value for column in load(tmp_path / "t.csv", None).schema.columns]
    assert kinds == ["categorical", "categorical", "integer", "integer", "continuous"]


def test_what_is_no_table_at_all_is_refused_by_its_type() -> None:
    rows = np.zeros((3, 2))
    anything: Any = (rows, [1, 2], 3, None)
    for given in anything:
        what = f"the table is a {type(given).__name__}: give a pandas DataFrame"
        with pytest.raises(DataError, match=what):
            load_given(given, None, None, ())


def test_many_problems_are_one_line() -> None:
    data = pd.DataFrame({f"c{i}": [1, 1, 1] for i in range(30)})
    with pytest.raises(SchemaError, match=r"and 25 more$") as caught:
        Schema.infer(data)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "T.CSV.GZ"])
def test_reads_csv(tmp_path: Path, name: str) -> None:
    text = "\ufeffa, b,c\n1, x,?\n2,,3.5\n".encode()
    path = written(tmp_path, name, gzip.compress(text) if name.lower().endswith("gz") else text)
    data = load_table(path)
    assert list(data) == ["a", "b", "c"]
    assert data["a"].tolist() == [1, 2]
    assert data["b"][0] == "x"
    assert data.isna().to_numpy().tolist() == [[False, False, True], [False, True, False]]
    assert data["c"].dtype == np.float64


def test_a_nameless_column_keeps_its_numbers(tmp_path: Path) -> None:
    data = load_table(written(tmp_path, "t.csv", ",a\n0,\n1,5\n"))
    assert data["Unnamed: 0"].tolist() == [0, 1]
    assert data["a"].isna().tolist() == [True, False]


def test_the_schema_says_what_is_text_and_what_is_missing(tmp_path: Path) -> None:
    schema = Schema(
        columns=(
            Column(name="zip", kind=Kind.CATEGORICAL, categories=("01", "1", "2")),
            Column(name="drug", kind=Kind.CATEGORICAL, categories=("None", "some"), missing=True),
            Column(name="n", kind=Kind.INTEGER, lower=0, upper=9, missing=True),
            Column(name="yes", kind=Kind.BINARY, categories=(False, True)),
        )
    )
    path = written(
        tmp_path, "t.csv", "zip,drug,n,yes\n01,None,None,True\n1,NA,3,False\n2,some,?,True\n"
    )
    canonical = fitting(load_table(path, schema=schema), schema, source="it")
    assert canonical["zip"].tolist() == ["01", "1", "2"]
    assert canonical["drug"][0] == "None"
    assert canonical["drug"].isna().tolist() == [False, True, False]
    assert canonical["n"].isna().tolist() == [True, False, True]
    assert canonical["yes"].tolist() == [True, False, True]


def test_a_schema_column_that_the_file_lacks_is_the_schemas_problem(tmp_path: Path) -> None:
    schema = Schema(
        columns=(
            Column(name="a", kind=Kind.INTEGER, lower=0, upper=9),
            Column(name="lost", kind=Kind.BINARY, categories=("n", "y")),
        )
    )
    path = written(tmp_path, "t.csv", "a,extra\n1,2\n")
    with pytest.raises(
        DataError, match=r"'lost' is missing.*'extra' is not in the schema"
    ) as error:
        fitting(load_table(path, schema=schema), schema, source=str(path))
    assert str(path) in str(error.value)
    assert "correct the table or the schema" in str(error.value)


def test_parquet_round_trip(tmp_path: Path) -> None:
    data = pd.DataFrame(
        {
            "n": pd.array([1, None, 3], dtype="Int64"),
            "r": [0.5, 1.5, np.nan],
            "c": pd.Categorical(["x", "y", None]),
            "b": [True, False, True],
        }
    )
    schema = Schema.infer(data)
    data.to_parquet(tmp_path / "t.parquet")
    read = load_table(tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(
        fitting(read, schema, source="it"), fitting(data, schema, source="it")
    )
    data.head(0).to_parquet(tmp_path / "none.pq")
    assert "no rows" in refused(DataError, tmp_path / "none.pq")


def test_parquet_without_pyarrow_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name.partition(".")[0] in ("pyarrow", "fastparquet"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    path = written(tmp_path, "t.parquet", "PAR1")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[parquet\]'"):
        load_table(path)


def no_data() -> pd.DataFrame:
    raise AssertionError("our own schema files need no table")


def test_loads_a_schema_it_saved(tmp_path: Path) -> None:
    schema = Schema.infer(pd.DataFrame({"a": [1, 2, 5], "b": ["\u00e9", "y", "x"]}), label="b")
    schema.save(tmp_path / "s.json")
    assert load_schema(tmp_path / "s.json", no_data) == schema


def test_loads_sdv_metadata_with_bounds_from_the_table(tmp_path: Path) -> None:
    columns = {"a": {"sdtype": "numerical"}, "b": {"sdtype": "categorical"}}
    data = pd.DataFrame({"a": [1, 2, 5], "b": ["z", "y", "x"]})
    flat = {"columns": columns, "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1"}
    nested = {"tables": {"t": {"columns": columns}}, "relationships": []}
    for document in (flat, nested):
        schema = load_schema(written(tmp_path, "s.json", json.dumps(document)), lambda: data)
        assert schema.inferred
        assert schema.columns[0].bounds == (1, 5)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not JSON"),
        ("a,b\n1,2\n", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        ("[1]", "expected a JSON object"),
        ("{}", 'needs a list "columns"'),
        ('{"tables": [1]}', 'needs a list "columns"'),
        ('{"columns": {"a": {"sdtype": "id"}}}', "sdtype 'id'"),
    ],
)
def test_a_file_that_is_no_schema_is_refused(
    tmp_path: Path, content: str | bytes, says: str
) -> None:
    path = written(tmp_path, "s.json", content)
    with pytest.raises(SchemaError) as caught:
        load_schema(path, lambda: pd.DataFrame({"a": [1, 2]}))
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_schema_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="No such file"):
        load_schema(tmp_path / "none.json", no_data)
    with pytest.raises(SchemaError, match="directory"):
        load_schema(tmp_path, no_data)


@pytest.mark.parametrize(
    ("name", "label", "shape"),
    [("adult_500", "income", (500, 15)), ("cervical_cancer", "Biopsy", (858, 36))],
)
def test_real_tables_need_no_preparation(
    data_folder: Path, name: str, label: str, shape: tuple[int, int]
) -> None:
    data = load_table(data_folder / f"{name}.csv.gz")
    schema = Schema.infer(data, label=label)
    canonical = fitting(data, schema, source=name)
    assert canonical.shape == shape
    assert canonical.isna().to_numpy().any()  # both mark missing values by "?"
    assert "?" not in set(canonical.to_numpy().ravel())
    back = decode(encode(canonical, schema), schema)
    pd.testing.assert_frame_equal(back, canonical, rtol=1e-12)
    assert Schema.from_document(json.loads(json.dumps(schema.to_document()))) == schema


def test_the_digest_is_that_of_every_value_as_text() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "numbers": [0.0, -0.0, np.nan, 0.1 + 0.2, 1e300, 5e-324] * 4,
            "whole": rng.integers(-5, 5, 24),
            "mixed": np.array(["1", 1, True, 1.0, np.nan, "nan"] * 4, dtype=object),
            "small": rng.normal(size=24).astype(np.float32),
        }
    )
    hashed = pd.util.hash_pandas_object(table.astype(str), index=False)
    expected = hashlib.sha256(hashed.to_numpy().astype("<u8").tobytes())
    expected.update(json.dumps(list(table.columns)).encode())
    assert data_digest(table) == expected.hexdigest()


ROWS = pd.DataFrame({"größe": ["1;5", "2;5", "3;0", "1;5"], "x": [4, 5, 6, 7]})


@pytest.mark.parametrize(
    ("separator", "encoding"), [("^", None), ("tab", None), ("\t", "utf-16-le"), (";", "cp1252")]
)
def test_a_stated_form_is_not_guessed(
    tmp_path: Path, separator: str | None, encoding: str | None
) -> None:
    path = tmp_path / "t.csv"
    between = "\t" if separator == "tab" else separator
    ROWS.to_csv(path, index=False, sep=between or ",", encoding=encoding or "utf-8")
    with csv_written(separator, encoding):
        assert load_table(path).equals(ROWS)
        assert load_table(path, unchanged=True)["x"].tolist() == ["4", "5", "6", "7"]


@pytest.mark.parametrize(
    ("separator", "encoding", "says"),
    [
        ("^", None, "has no '^' in its header, but ',': correct `separator`"),
        (None, "ascii", "is not text in ascii: correct `encoding`"),
        (None, "utf-16", "is not text in utf-16: correct `encoding`"),
        ("ab", None, "`separator` must be one character, or tab, got 'ab'"),
        (None, "klingon", "`encoding` 'klingon' is unknown"),
        (None, "hex", "`encoding` 'hex' is unknown"),
    ],
)
def test_a_stated_form_that_does_not_fit_is_refused(
    tmp_path: Path, separator: str | None, encoding: str | None, says: str
) -> None:
    path = tmp_path / "t.csv"
    ROWS.to_csv(path, index=False)
    with (
        pytest.raises(InputError, match=re.escape(says)) as refusal,
        csv_written(separator, encoding),
    ):
        load_table(path)
    assert len(str(refusal.value).splitlines()) == 1
    assert load_table(path).equals(ROWS)  # nothing is stated any more


def test_a_command_repeats_a_stated_form(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": range(30), "b": [1, 2, 4] * 10}).to_csv(path, index=False, sep="^")
    settings = audit_settings(separator="^", epsilon=1.0)
    spec = build_spec("marginals", audited_table(str(path), None, settings), settings)
    assert "--set 'separator=^'" in spec.reproduce
    assert spec.specification["separator"] == "^"
    assert "encoding" not in spec.specification
