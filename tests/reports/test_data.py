"""Public tables: the catalogue is complete, files are compared, public files are converted."""

from __future__ import annotations

import dataclasses
import gzip
import re
import zipfile
from pathlib import Path

import pytest

from dpaudit.errors import DataError
from reports import cervical, data, fetch
from reports.data import PublicTable, catalogue, sha256, table_file

ADULT = (
    b"39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
    b"Male, 2174, 0, 40, United-States, <=50K\n"
    b"54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, "
    b"Male, 0, 0, 60, South, >50K\n\n"
)
"""The first record of adult.data, one with missing values, and the blank line at its end."""
CONVERTED = (
    fetch.ADULT_COLUMNS.encode() + b"\n"
    b"39,State-gov,77516,Bachelors,13,Never-married,Adm-clerical,Not-in-family,White,"
    b"Male,2174,0,40,United-States,<=50K\n"
    b"54,?,180211,Some-college,10,Married-civ-spouse,?,Husband,Asian-Pac-Islander,"
    b"Male,0,0,60,South,>50K\n"
)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublicTable:
    """Adult with two records, in an archive that needs no network."""
    archive = tmp_path / "adult.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("adult.data", ADULT)
    table = dataclasses.replace(
        catalogue()["adult"],
        archive=archive.as_uri(),
        sha256=sha256(CONVERTED),
        member_sha256=sha256(ADULT),
    )
    monkeypatch.setitem(catalogue(), "adult", table)
    return table


@pytest.mark.parametrize("name", sorted(catalogue()))
def test_a_table_is_described_in_full(name: str) -> None:
    table = catalogue()[name]
    assert re.fullmatch(r"[0-9a-f]{64}", table.sha256)
    assert re.fullmatch(r"[0-9a-f]{64}", table.member_sha256)
    assert table.archive.startswith("https://archive.ics.uci.edu/")
    assert table.page.startswith("https://")
    assert table.file.endswith(".csv.gz")
    assert all((table.title, table.doi, table.licence, table.version, table.conversion))
    assert min(table.rows, table.columns) > 0
    assert name in fetch.CONVERSIONS
    page = (data.CATALOGUE.parent / "README.md").read_text()
    assert table.page in page
    assert f"`{table.member}`" in page
    assert f"`{table.member_sha256[:8]}…" in page


def test_the_whole_table_of_the_tests_is_that_of_the_studies(data_folder: Path) -> None:
    path = table_file("cervical-cancer", data_folder)
    assert path == data_folder / "cervical_cancer.csv.gz"
    table = cervical.published_table(data_folder)
    assert table.shape == (686, 29)
    for column in ("STDs_number", "STDs_N_diagnosis"):
        assert table[column].idxmax() == cervical.TARGET
        assert (table[column] == table[column].max()).sum() == 1


def test_cervical_cancer_is_converted_to_the_byte(data_folder: Path) -> None:
    ours = gzip.decompress((data_folder / "cervical_cancer.csv.gz").read_bytes()).decode()
    lines = [",".join(cell or "?" for cell in line.split(",")) for line in ours.splitlines()[1:]]
    heads = (
        "Age,Number of sexual partners,First sexual intercourse,Num of pregnancies,Smokes,"
        "Smokes (years),Smokes (packs/year),Hormonal Contraceptives,"
        "Hormonal Contraceptives (years),IUD,IUD (years),STDs,STDs (number),STDs:condylomatosis,"
        "STDs:cervical condylomatosis,STDs:vaginal condylomatosis,"
        "STDs:vulvo-perineal condylomatosis,STDs:syphilis,STDs:pelvic inflammatory disease,"
        "STDs:genital herpes,STDs:molluscum contagiosum,STDs:AIDS,STDs:HIV,STDs:Hepatitis B,"
        "STDs:HPV,STDs: Number of diagnosis,STDs: Time since first diagnosis,"
        "STDs: Time since last diagnosis,Dx:Cancer,Dx:CIN,Dx:HPV,Dx,Hinselmann,Schiller,Citology,"
        "Biopsy"
    )
    public = "".join(f"{line}\n" for line in (heads, *lines)).encode()
    table = catalogue()["cervical-cancer"]
    assert sha256(public) == table.member_sha256
    assert sha256(fetch.cervical_cancer(public)) == table.sha256


def test_a_file_that_is_missing_or_another_one_is_refused(
    small: PublicTable, tmp_path: Path
) -> None:
    path = tmp_path / "adult.csv.gz"
    with pytest.raises(DataError, match="--data or DPAUDIT_DATA"):
        table_file("adult", None)
    with pytest.raises(DataError, match=r"adult.csv.gz is missing; .*reports.fetch.*uci"):
        table_file("adult", tmp_path)
    path.write_bytes(b"not compressed")
    with pytest.raises(DataError, match="cannot be read"):
        table_file("adult", tmp_path)
    whole = gzip.compress(CONVERTED)
    for broken in (whole[:40], whole[:12] + bytes(8) + whole[20:]):
        path.write_bytes(broken)
        with pytest.raises(DataError, match="cannot be read"):
            table_file("adult", tmp_path)
    path.write_bytes(gzip.compress(CONVERTED + b"one more\n"))
    with pytest.raises(DataError, match=f"SHA-256 [0-9a-f]+, not {small.sha256}"):
        table_file("adult", tmp_path)
    path.write_bytes(gzip.compress(CONVERTED, compresslevel=1))
    assert table_file("adult", tmp_path) == path


def test_a_table_is_fetched_from_its_archive(
    small: PublicTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tables"
    fetch.main([str(folder), "adult"])
    path = folder / small.file
    assert capsys.readouterr().out == f"{path}\n"
    assert gzip.decompress(path.read_bytes()) == CONVERTED
    assert table_file("adult", folder) == path


def test_a_public_file_that_is_there_is_not_downloaded(small: PublicTable, tmp_path: Path) -> None:
    (tmp_path / "adult.zip").unlink()
    with pytest.raises(DataError, match=f"download it from {small.page}"):
        fetch.make("adult", tmp_path)
    (tmp_path / "adult.data").write_bytes(ADULT)
    assert gzip.decompress(fetch.make("adult", tmp_path).read_bytes()) == CONVERTED
    (tmp_path / "adult.data").write_bytes(ADULT + b"more")
    with pytest.raises(DataError, match="another version"):
        fetch.make("adult", tmp_path)


def test_an_unknown_table_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        fetch.main([str(tmp_path), "mnist"])
    assert ended.value.code == 2
    assert "unknown: mnist; known: adult, cervical-cancer" in capsys.readouterr().err
