"""Runs attacks of anonymeter 1.1.0 in its own environment: one request in, one answer out.

Nothing of dpaudit is imported here. The request is a line of JSON on standard input, the answer one
on standard output; tables are CSV files in the working folder.
"""

import json
import logging
import sys
import warnings
from collections.abc import Callable
from functools import partial, partialmethod
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

MOST_ATTEMPTS = 50_000
"""Largest number of queries of singling out by several columns."""
COLUMNS = 3
"""Number of columns in such a query."""


class Notes(logging.Handler):
    """Collects the library's warnings."""

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one message."""
        self.found.append(record.getMessage())


def seed_everything(seed: int) -> None:
    """Seeds the global generators of the library, which takes a seed in one of its attacks only.

    Singling out draws from values in polars' order, which differs between processes unless it keeps
    the table's order.
    """
    np.random.seed(seed)
    pl.set_random_seed(seed)
    pl.Series.unique = partialmethod(pl.Series.unique, maintain_order=True)
    pl.DataFrame.group_by = partialmethod(pl.DataFrame.group_by, maintain_order=True)
    make, shared = np.random.default_rng, np.random.default_rng(seed)
    np.random.default_rng = lambda given=None: shared if given is None else make(given)  # type: ignore[assignment]


def read(name: str, numeric: set[str]) -> pd.DataFrame:
    """A table: numbers as numbers, everything else as text."""
    header = pd.read_csv(name, nrows=0).columns
    kinds = {column: "float64" if column in numeric else "str" for column in header}
    return pd.read_csv(name, dtype=kinds, keep_default_na=False)


def finding(
    kind: str, secret: str | None, evaluator: Any, request: dict[str, Any]
) -> dict[str, Any]:
    """The figures of one attack."""
    results = evaluator.results(confidence_level=request["confidence"])
    risk = results.risk()
    return {
        "kind": kind,
        "secret": secret,
        "attacks": request["attacks"],
        "train": int(results.n_success),
        "holdout": int(results.n_control),
        "baseline": int(results.n_baseline),
        "risk": float(risk.value),
        "low": float(risk.ci[0]),
        "high": float(risk.ci[1]),
    }


def run_attacks(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs all attacks; a finding for each."""
    numeric = set(request["numeric"])
    train, synthetic, holdout = (
        read(request[n], numeric) for n in ("train", "synthetic", "holdout")
    )
    attacks = request["attacks"]

    def singling_out(mode: str, columns: int) -> Any:
        return SinglingOutEvaluator(
            train,
            synthetic,
            n_attacks=attacks,
            n_cols=columns,
            control=holdout,
            max_attempts=MOST_ATTEMPTS,
            seed=request["seed"],
        ).evaluate(mode)

    def linkability() -> Any:
        return LinkabilityEvaluator(
            train, synthetic, tuple(request["halves"]), n_attacks=attacks, control=holdout
        ).evaluate(n_jobs=1)

    def inference(secret: dict[str, Any]) -> Any:
        known = [column for column in train.columns if column not in secret["columns"]]
        name = secret["columns"][0]
        return InferenceEvaluator(
            train,
            synthetic,
            known,
            name,
            regression=name in numeric,
            n_attacks=attacks,
            control=holdout,
        ).evaluate(n_jobs=1)

    columns = min(COLUMNS, len(train.columns))
    jobs: list[tuple[str, str | None, Callable[[], Any]]] = [
        ("singling out, 1 column", None, lambda: singling_out("univariate", 1))
    ]
    if columns > 1:
        several = f"singling out, {columns} columns"
        jobs.append((several, None, lambda: singling_out("multivariate", columns)))
        jobs.append(("linkability", None, linkability))
    jobs += [("inference", of["name"], partial(inference, of)) for of in request["secrets"]]
    heard = Notes()
    logging.getLogger("anonymeter").addHandler(heard)
    findings = []
    for kind, secret, run in jobs:
        heard.found.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            result = finding(kind, secret, run(), request)
        warned = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        findings.append({**result, "notes": [*heard.found, *warned]})
    return findings


def main() -> None:
    """Answers one request; what the library prints goes to standard error."""
    output, sys.stdout = sys.stdout, sys.stderr
    request = json.loads(sys.stdin.readline())
    seed_everything(request["seed"])
    print(json.dumps({"findings": run_attacks(request)}), file=output, flush=True)


if __name__ == "__main__":
    main()
