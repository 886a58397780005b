"""The loop over revisions that docs/guides/ci.md proposes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "ci.md"
GENERATOR = """
import numpy as np
import pandas as pd

class Model:
    def __init__(self, count): self.count = count
    def sample(self, n, *, seed): return pd.DataFrame({"a": [self.count] * n})

class Gan:
    def fit(self, data, *, seed):
        return Model(len(data) + np.random.default_rng(seed).laplace(0, SCALE))
"""
SCHEMA = '{"columns": [{"name": "a", "kind": "continuous", "lower": 0, "upper": 100}]}'


@pytest.mark.ci
def test_the_first_commit_that_spends_too_much_is_found(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.check_output(["git", *who, *words], cwd=tmp_path, text=True).strip()

    git("init", "-q")
    commits = {}
    for subject, scale in {"good": 1.0, "fails": None, "half the noise": 0.1, "later": 0.1}.items():
        text = "import nothing_of_this_name" if scale is None else GENERATOR
        (tmp_path / "my_generator.py").write_text(f"{text.replace('SCALE', str(scale))}# {subject}")
        git("add", "my_generator.py")
        git("commit", "-q", "-m", subject)
        commits[subject] = git("rev-parse", "HEAD")
    (tmp_path / "table.csv").write_text("a\n" + "5\n" * 30)
    (tmp_path / "table.schema.json").write_text(SCHEMA)
    [loop] = re.findall(r"```sh\n(git bisect start.*?)```", GUIDE.read_text(), re.DOTALL)
    ended = subprocess.run(
        ["sh", "-c", loop.replace("v1.2", commits["good"])],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    # A commit that does not run may hide the culprit: git names both that are left.
    assert commits["half the noise"] in ended.stdout
    assert commits["later"] not in ended.stdout.split("could be any of", 1)[-1]
    assert git("rev-parse", "HEAD") == commits["later"]
