"""What a trial keeps of how its table was written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from batch_toys import TRIALS, Together, payload
from dpaudit.game.training import _read, run_batch, run_trial
from dpaudit.game.trial import Role
from dpaudit.model.column import Column, Kind
from dpaudit.model.encoding import table_of, values_of_table
from dpaudit.model.schema import Schema, canonical_table
from dpaudit.plugins.protocols import FloatArray, ReleaseAttack
from dpaudit.plugins.release import RELEASE, accept
from dpaudit_attacks.form import TableForm


@dataclass
class Alone:
    """Trains as `Together` does, but one model at a time, and writes columns in some order."""

    backwards: bool

    def fit(self, data: pd.DataFrame, *, seed: int | None) -> Alone:
        self.model = Together().fit(data, seed=seed)
        return self

    def sample(self, n: int, *, seed: int | None) -> pd.DataFrame:
        table = self.model.sample(n, seed=seed)
        return table[list(table.columns)[::-1]] if self.backwards else table


def released(generator: object, *, together: bool = False) -> tuple[FloatArray, bytes]:
    """Features of the release and the digest of the table of one trial."""
    given = payload(generator, TableForm())
    names = TableForm().feature_names(given.game.view)
    first = next(at for at, name in enumerate(names) if name.column == RELEASE)
    outcome = run_batch(given, TRIALS)[0] if together else run_trial(given, TRIALS[0])
    assert outcome.features is not None
    assert outcome.table is not None
    assert len(outcome.features) == len(names)
    return outcome.features[first:], outcome.table


def test_the_form_of_a_release_is_seen_and_its_values_are_the_same() -> None:
    assert isinstance(TableForm(), ReleaseAttack)
    plain, backwards = released(Alone(False)), released(Alone(True))
    assert not plain[0].any()
    assert backwards[0][0] > 0  # columns out of order
    assert plain[1] == backwards[1]


def test_values_of_models_that_are_trained_together_have_no_form() -> None:
    given = payload(Together(), TableForm())
    for outcome in run_batch(given, TRIALS):
        again = run_trial(given, outcome.trial._replace(role=Role.REPLAY))
        assert again.table == outcome.table
        assert np.array_equal(again.features, outcome.features)
    assert not released(Together(), together=True)[0].any()


@pytest.mark.parametrize("named", [False, True])
def test_a_table_of_numbers_is_read_without_a_frame_as_with_one(named: bool) -> None:
    columns = [
        Column(name="pay", kind=Kind.CONTINUOUS, lower=0, upper=9, missing=True),
        Column(name="age", kind=Kind.INTEGER, lower=0, upper=99),
        Column(name="job", kind=Kind.CATEGORICAL, categories=("a", "b")),
    ]
    schema = Schema(columns=tuple(columns if named else columns[:2]))
    given = pd.DataFrame({"age": [-0.0, 2.0], "pay": [-0.0, np.nan], "job": ["b", "c"]})
    release = given[[*schema.names]]
    expected = accept(release, schema, 2)
    read, values, table = _read(release, schema, 2)
    assert values.tobytes() == values_of_table(expected, schema).tobytes()
    assert (table is not None) == named
    for frame in (table_of(values, schema) if table is None else table, canonical_table(read)):
        pd.testing.assert_frame_equal(frame, expected)
