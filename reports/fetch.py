"""Makes the folder of public tables: downloads, converts, and compares checksums.

Usage: python -m reports.fetch DIR [TABLE ...]

A public file that is in DIR already (adult.data, risk_factors_cervical_cancer.csv) is not
downloaded again.
"""

from __future__ import annotations

import argparse
import gzip
import io
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from dpaudit.errors import DataError
from dpaudit.files import write_whole
from reports.command import start
from reports.data import PublicTable, catalogue, sha256

TIMEOUT_SECONDS = 60
ADULT_COLUMNS = (
    "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,"
    "capital_gain,capital_loss,hours_per_week,native_country,income"
)
CERVICAL_COLUMNS = (
    "Age,N_sex_partners,First_sex_intercourse,N_pregnancies,Smokes,Smokes_years,Smokes_packs_year,"
    "Hormonal_Contraceptives,Hormonal_Contraceptives_years,IUD,IUD_years,STDs,STDs_number,"
    "STDs_condylomatosis,STDs_cervical_condylomatosis,STDs_vaginal_condylomatosis,"
    "STDs_vulvo_perineal_condylomatosis,STDs_syphilis,STDs_pelvic_inflammatory_disease,"
    "STDs_genital_herpes,STDs_molluscum_contagiosum,STDs_AIDS,STDs_HIV,STDs_Hepatitis_B,STDs_HPV,"
    "STDs_N_diagnosis,STDs_Time_since_first_diagnosis,STDs_Time_since_last_diagnosis,Dx_Cancer,"
    "Dx_CIN,Dx_HPV,Dx,Hinselmann,Schiller,Citology,Biopsy"
)
CERVICAL_NUMBERS = frozenset(
    {
        *("N_sex_partners", "First_sex_intercourse", "N_pregnancies", "Smokes_years"),
        *("Smokes_packs_year", "Hormonal_Contraceptives_years", "IUD_years", "STDs_number"),
        *("STDs_Time_since_first_diagnosis", "STDs_Time_since_last_diagnosis"),
    }
)
"""Columns of more than 0 and 1 with missing values."""


def adult(public: bytes) -> bytes:
    """The CSV of Adult from adult.data."""
    return f"{ADULT_COLUMNS}\n".encode() + public.replace(b", ", b",").removesuffix(b"\n")


def cervical_cancer(public: bytes) -> bytes:
    """The CSV of Cervical Cancer from risk_factors_cervical_cancer.csv."""
    empties = [name in CERVICAL_NUMBERS for name in CERVICAL_COLUMNS.split(",")]
    lines = [CERVICAL_COLUMNS]
    for line in public.decode().splitlines()[1:]:
        cells = zip(line.split(","), empties, strict=True)
        lines.append(",".join("" if cell == "?" and empty else cell for cell, empty in cells))
    return "".join(f"{line}\n" for line in lines).encode()


CONVERSIONS: dict[str, Callable[[bytes], bytes]] = {
    "adult": adult,
    "cervical-cancer": cervical_cancer,
}


def public_file(table: PublicTable, folder: Path) -> bytes:
    """The public file, from the folder or from its archive.

    Raises:
        DataError: If it cannot be downloaded or is another one.
    """
    path = folder / table.member
    try:
        if path.exists():
            content = path.read_bytes()
        else:
            with urllib.request.urlopen(table.archive, timeout=TIMEOUT_SECONDS) as answer:
                archive = zipfile.ZipFile(io.BytesIO(answer.read()))
            content = archive.read(table.member)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise DataError(
            f"{table.member} cannot be had from {table.archive} ({error}); download it from "
            f"{table.page} into {folder} and start again"
        ) from error
    found = sha256(content)
    if found != table.member_sha256:
        raise DataError(
            f"{table.member} has SHA-256 {found}, not {table.member_sha256}: another version than "
            "the studies read"
        )
    return content


def make(name: str, folder: Path) -> Path:
    """Makes the file of one table.

    Args:
        name: Name of the table in data.toml.
        folder: Where the file is written.

    Returns:
        Path of the file.

    Raises:
        DataError: If the public file cannot be had or is another one.
    """
    table = catalogue()[name]
    converted = CONVERSIONS[name](public_file(table, folder))
    if sha256(converted) != table.sha256:
        raise DataError(f"{table.file} was not converted as data.toml says")
    path = folder / table.file
    write_whole(path, gzip.compress(converted, mtime=0))
    return path


def main(given: Sequence[str] | None = None) -> None:
    """Makes the tables that are asked for."""
    known = tuple(catalogue())
    parser = argparse.ArgumentParser(
        prog="python -m reports.fetch", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the public tables")
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help=f"default: all ({', '.join(known)})"
    )
    asked = parser.parse_args(given)
    unknown = sorted(set(asked.tables) - set(known))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name in asked.tables or known:
        print(make(name, asked.folder))


if __name__ == "__main__":
    start(main)
