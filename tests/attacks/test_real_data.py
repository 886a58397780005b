from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpaudit.model.schema import Schema
from dpaudit.model.tables import fitting, load_table
from dpaudit.plugins.protocols import Attack
from dpaudit_attacks.form import TableForm
from dpaudit_attacks.groundhog import Correlation, Ensemble, Histogram, Naive
from dpaudit_attacks.queries import TargetQueries
from samples import game_view

ATTACKS = [
    Naive(),
    Histogram(),
    Correlation(),
    Ensemble(),
    TargetQueries(max_queries=500),
    TableForm(),
]


@pytest.mark.parametrize("name", ["adult_500", "cervical_cancer"])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: type(attack).__name__)
def test_attacks_read_real_tables(data_folder: Path, name: str, attack: Attack) -> None:
    data = load_table(data_folder / f"{name}.csv.gz")
    data = data[[column for column in data if data[column].nunique() > 1]]
    schema = Schema.infer(data)
    table = fitting(data, schema, source=name)
    game = game_view(schema, table.iloc[:1], others=table.iloc[1:], n_rows=300)
    attack.check(game)
    names = attack.feature_names(game)
    samples = [
        schema.canonical(table.sample(300, random_state=np.random.default_rng(seed)))
        for seed in range(8)
    ]
    features = np.array([attack.features(sample, game) for sample in samples])
    assert features.shape == (8, len(names))
    assert len(set(names)) == len(names)
    assert np.isfinite(features).all()
    assert (features == attack.features(samples[0], game)).all(axis=1).tolist() == [
        True,
        *[False] * 7,
    ]
    scores = attack.fit(features, np.arange(8) % 2 == 1, seed=0)(features)
    assert np.isfinite(scores).all()
