"""Cervical Cancer as the published audit of PATE-GAN had it: 686 x 29, and its public schema."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from sklearn.model_selection import train_test_split

from reports.data import table_file

SCHEMA_FILE = Path(__file__).with_name("cervical.schema.json")
"""Bounds written by hand, wider than any record."""
TARGET = 397
"""The only record with the maximum of STDs_number and of STDs_N_diagnosis."""
NEAR_CONSTANT = [
    *("STDs_cervical_condylomatosis", "STDs_pelvic_inflammatory_disease", "STDs_genital_herpes"),
    *("STDs_molluscum_contagiosum", "STDs_AIDS", "STDs_Hepatitis_B", "STDs_HPV"),
]
FRACTIONAL = ["Smokes_years", "Smokes_packs_year", "Hormonal_Contraceptives_years", "IUD_years"]


def published_table(folder: Path | None) -> pd.DataFrame:
    """The training table of the published audit: modes for gaps, 80 % split of seed 13.

    Args:
        folder: Folder of the public tables; None if none was named.

    Returns:
        The table, 686 x 29.

    Raises:
        DataError: If the public table is not there, or is another one.
    """
    path = table_file("cervical-cancer", folder)
    table = pd.read_csv(path, na_values="?").drop(columns=NEAR_CONSTANT).apply(pd.to_numeric)
    table = table.fillna(table.mode().iloc[0])
    table = table.astype({name: float if name in FRACTIONAL else int for name in table})
    train: pd.DataFrame
    train, _ = train_test_split(table, test_size=0.2, stratify=table["Biopsy"], random_state=13)
    return train.reset_index(drop=True)
