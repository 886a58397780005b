"""A generator in a process of its own gets the unit's column, and may claim per unit."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

from dpaudit.external import worker
from dpaudit.external.generator import WorkerGenerator
from dpaudit.external.session import WorkerError, hello_of
from dpaudit.model.claim import PrivacyClaim
from reports.units.mechanisms import SCHEMA, visits

GENERATOR = """
class Claim:
    epsilon, delta, unit = 1.0, 0.0, "patient"


class First:
    claim = Claim()

    def fit(self, data, *, seed):
        self.patient = data["patient"].iloc[0]
        return self

    def sample(self, n, *, seed):
        import pandas

        cost = 7.0 if self.patient == NAMED else 0.0
        return pandas.DataFrame({"drug": ["A"] * n, "cost": [cost] * n, "ill": [0] * n})
"""


@pytest.mark.parametrize("named", [pytest.param(0, marks=pytest.mark.ci), "p-0"])
def test_a_worker_is_sent_the_unit_and_claims_per_unit(tmp_path: Path, named: object) -> None:
    path = tmp_path / "first.py"
    path.write_text(GENERATOR.replace("NAMED", repr(named)))
    table = visits(0)
    if isinstance(named, str):
        table["patient"] = "p-" + table["patient"].astype(str)
    command = f"{sys.executable} {worker.__file__} {path}:First"
    generator = WorkerGenerator(command=command, schema=SCHEMA, parameters={})
    assert generator.claim == PrivacyClaim(
        epsilon=1.0, unit="patient", source="said by the worker of First"
    )
    model = generator.fit(SCHEMA.canonical(table), seed=1)
    drawn = model.sample(5, seed=2)
    assert isinstance(drawn, pd.DataFrame)
    assert drawn["cost"].tolist() == [7.0] * 5


def test_a_unit_that_is_no_name_is_refused() -> None:
    answer = {
        "protocol": "dpaudit-worker/1",
        "name": "x",
        "seedable": True,
        "formats": ["csv"],
        "claim": {"epsilon": 1, "unit": 3},
    }
    with pytest.raises(WorkerError, match="a column name as `unit`"):
        hello_of(answer)


def test_a_worker_may_say_how_its_claim_is_proved() -> None:
    answer = {"protocol": "dpaudit-worker/1", "name": "x"}
    assert hello_of(answer).proof is None
    assert hello_of({**answer, "proof": "composition"}).proof == "composition"
    with pytest.raises(WorkerError, match="must have 'composition' as `proof`, or none"):
        hello_of({**answer, "proof": "none"})
