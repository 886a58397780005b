"""An audit in a notebook: a class of a cell, progress, the result shown."""

from __future__ import annotations

from pathlib import Path

import pytest

CELLS = (
    """
import dpaudit
import numpy as np
import pandas as pd

class Noise:
    claim = dpaudit.PrivacyClaim(epsilon=1.0)

    def fit(self, data, *, seed):
        return self

    def sample(self, n, *, seed):
        rng = np.random.default_rng(seed)
        return pd.DataFrame({"age": rng.integers(20, 60, n), "income": rng.normal(30, 5, n)})

rng = np.random.default_rng(0)
data = pd.DataFrame({"age": rng.integers(20, 60, 30), "income": rng.normal(30, 5, 30)})
QUICK = ("groundhog-naive,classifier=logistic-regression",)
game = dpaudit.TwoWorlds(shadow_models=40, attacks=QUICK, probe=False)
""",
    'result = dpaudit.audit(Noise(), data, game=game, jobs=1, out="run")\nresult',
    """class Noise(Noise):

    def fit(self, data, *, seed):
        raise ValueError("Jane Doe")

print(dpaudit.audit(Noise(), data, game=game, jobs=1, out="raising"))
""",
    """
try:
    dpaudit.audit(Noise(), data, game=game, jobs=1, out="run")
except dpaudit.InputError as error:
    print(error)
""",
)


@pytest.mark.ci
def test_a_whole_audit_in_a_notebook(tmp_path: Path) -> None:
    try:
        from nbclient import NotebookClient
        from nbformat.v4 import new_code_cell, new_notebook
    except ImportError:
        pytest.skip("needs nbclient")
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    [shown] = [one.data for one in outputs[1] if one.output_type == "execute_result"]
    assert "<strong>CONSISTENT</strong>: no violation of epsilon 1 found" in shown["text/html"]
    progress = [one.data["text/plain"] for one in outputs[1] if one.output_type == "display_data"]
    assert any("shadow models: 40 of 40" in line for line in progress)
    said = [" ".join("".join(one.get("text", "") for one in of).split()) for of in outputs]
    assert "ValueError at notebook cell:4 in fit; tracebacks: raising/workers.log" in said[2]
    assert "Jane" not in said[2]
    assert "Jane" in (tmp_path / "raising" / "workers.log").read_text()
    assert "run holds another audit: generator" in said[3]  # a class without a file is compared
