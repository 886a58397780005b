"""Audits in a notebook: a class of a cell, progress, the result shown, figures."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from notebooks import executed, is_progress, text_of
from pages import ROOT, close_numbers

SHOWN = ROOT / "examples" / "notebook" / "own_gan.ipynb"

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

try:
    dpaudit.audit(Noise(), data, game=game, jobs=1, out="raising")
except dpaudit.InputError as error:
    print(error)
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
    notebook = executed(new_notebook(cells=[new_code_cell(cell) for cell in CELLS]), tmp_path)
    outputs = [cell.outputs for cell in notebook.cells]
    [shown] = [one.data for one in outputs[1] if one.output_type == "execute_result"]
    assert "<strong>CONSISTENT</strong>: no violation of epsilon 1 found" in shown["text/html"]
    [progress] = [one.data["text/plain"] for one in outputs[1] if one.output_type == "display_data"]
    assert "shadow models: 40 of 40" in progress.splitlines()
    said = [" ".join("".join(one.get("text", "") for one in of).split()) for of in outputs]
    assert "ValueError at notebook cell:4 in fit; tracebacks: raising/workers.log" in said[2]
    assert "Jane" not in said[2]
    assert "Jane" in (tmp_path / "raising" / "workers.log").read_text()
    assert (
        "run holds another audit: the code of the generator" in said[3]
    )  # a class without a file is compared


@pytest.mark.slow
def test_the_notebook_of_the_examples_gives_what_it_shows(tmp_path: Path) -> None:
    """Rows of its audits by their labels: networks are trained a little otherwise elsewhere."""
    shown = nbformat.read(SHOWN, as_version=4)
    stored = [list(cell.get("outputs", [])) for cell in shown.cells]
    fresh = [list(cell.get("outputs", [])) for cell in executed(shown, tmp_path).cells]
    assert [[sorted(one.get("data", ())) for one in of] for of in stored] == [
        [sorted(one.get("data", ())) for one in of] for of in fresh
    ]
    assert any("image/png" in one.get("data", ()) for of in fresh for one in of)
    texts = [
        (text_of(one), text_of(other))
        for of, others in zip(stored, fresh, strict=True)
        for one, other in zip(of, others, strict=True)
    ]
    assert sum(is_progress(one) for of in fresh for one in of) == 2
    for text, other in texts:
        lines, there = text.splitlines(), other.splitlines()
        assert [line.split(" ")[0] for line in lines] == [line.split(" ")[0] for line in there]
        for line, printed in zip(lines, there, strict=True):
            if "empirical epsilon" in line:
                assert close_numbers(line, printed, tolerance=0.25), f"{line}\n{printed}"
