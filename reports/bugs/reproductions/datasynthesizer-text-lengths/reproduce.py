"""Texts are as long as the longest one: pip install DataSynthesizer==0.1.13 pandas<2."""

import contextlib
import tempfile
from pathlib import Path

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator

TRIALS = 30
GIVEN = {
    "attribute_to_datatype": {"note": "String", "sex": "String"},
    "attribute_to_is_categorical": {"note": False, "sex": True},
    "attribute_to_is_candidate_key": {"note": False, "sex": False},
}


def longest(lengths: list[int], seed: int, folder: Path) -> int:
    """The length of the longest synthetic text."""
    notes = ["x" * length for length in lengths]
    pd.DataFrame({"note": notes, "sex": "f"}).to_csv(folder / "t.csv", index=False)
    describer, generator = DataDescriber(), DataGenerator()
    with contextlib.redirect_stdout(None):
        describer.describe_dataset_in_independent_attribute_mode(
            str(folder / "t.csv"), epsilon=1.0, seed=seed, **GIVEN
        )
    describer.save_dataset_description_to_file(folder / "s.json")
    generator.generate_dataset_in_independent_mode(300, folder / "s.json", seed=seed)
    return int(generator.synthetic_dataset["note"].str.len().max())


with tempfile.TemporaryDirectory() as name:
    others = [1 + number % 10 for number in range(40)]
    for own in (5, 40):
        above = sum(longest([*others, own], seed, Path(name)) > 10 for seed in range(TRIALS))
        print(f"own length {own}: a text of more than 10 letters in {above} of {TRIALS} tables")
