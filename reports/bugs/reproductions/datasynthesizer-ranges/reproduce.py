"""Synthetic values never leave the private range: pip install DataSynthesizer==0.1.13."""

import contextlib
import tempfile
from pathlib import Path

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator

TRIALS = 30


def greatest(values: list[float], seed: int, folder: Path) -> float:
    """The greatest synthetic value."""
    pd.DataFrame({"x": values}).to_csv(folder / "t.csv", index=False)
    describer, generator = DataDescriber(), DataGenerator()
    with contextlib.redirect_stdout(None):
        describer.describe_dataset_in_independent_attribute_mode(
            str(folder / "t.csv"),
            epsilon=1.0,
            attribute_to_is_candidate_key={"x": False},
            attribute_to_is_categorical={"x": False},
            seed=seed,
        )
    describer.save_dataset_description_to_file(folder / "s.json")
    generator.generate_dataset_in_independent_mode(100, folder / "s.json", seed=seed)
    return float(generator.synthetic_dataset["x"].max())


with tempfile.TemporaryDirectory() as name:
    others = [number / 4 for number in range(40)]
    for own in (5.0, 99.0):
        above = sum(greatest([*others, own], seed, Path(name)) > 10 for seed in range(TRIALS))
        print(f"own value {own:g}: a value above 10 in {above} of {TRIALS} synthetic tables")
