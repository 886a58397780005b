"""A category appears only if a record has it: pip install DataSynthesizer==0.1.13."""

import contextlib
import json
import tempfile
from pathlib import Path

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator

TRIALS = 30
DOMAIN = {"x": ["a", "b", "c"], "y": ["a", "b"]}


def appears(rows: list[tuple[str, str]], seed: int, folder: Path) -> bool:
    """Whether the synthetic table has the category c, which is in the domain handed over."""
    table, domain, description = (folder / name for name in ("t.csv", "d.json", "s.json"))
    pd.DataFrame(rows, columns=["x", "y"]).to_csv(table, index=False)
    domain.write_text(json.dumps(DOMAIN))
    describer, generator = DataDescriber(), DataGenerator()
    with contextlib.redirect_stdout(None):
        describer.describe_dataset_in_correlated_attribute_mode(
            str(table),
            k=1,
            epsilon=1.0,
            attribute_to_datatype={"x": "String", "y": "String"},
            categorical_attribute_domain_file=str(domain),
            seed=seed,
        )
    describer.save_dataset_description_to_file(description)
    generator.generate_dataset_in_correlated_attribute_mode(300, description, seed=seed)
    return bool((generator.synthetic_dataset["x"] == "c").any())


others = [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")] * 5
with tempfile.TemporaryDirectory() as name:
    for own, rows in (("without it", others), ("with ('c', 'a')", [*others, ("c", "a")])):
        seen = sum(appears(rows, seed, Path(name)) for seed in range(TRIALS))
        print(f"{own}: 'c' appears in {seen} of {TRIALS} synthetic tables")
