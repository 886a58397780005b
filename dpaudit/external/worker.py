"""The reference worker of dpaudit-worker/1: runs a generator in an environment of its own.

    python worker.py FILE.py:NAME

NAME is a class (built with the parameters that are sent, and with the schema's document if it has a
parameter `schema`), an instance, or a function f(data, n_rows, seed). A class or instance has
`fit(data, *, seed)`, which returns a model or itself; the model has `sample(n, *, seed)`. Tables
are pandas DataFrames if pandas can be imported, else lists of dicts; linked tables are a dict by
name. `claim`, if there is one, is a dict or an object with epsilon and delta; `proof` may name its
proof: "composition". This file needs only Python 3.7 and its standard library, so it may be copied.
"""

from __future__ import annotations

import copy
import csv
import importlib
import inspect
import json
import os
import sys
import traceback
from typing import Any

PROTOCOL = "dpaudit-worker/1"
MOST_TRACEBACK = 20_000
REPLAY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "replaying", "")
STDLIB = os.path.dirname(os.__file__) + os.sep


def main() -> None:
    """Answers one request after another until standard input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the generator prints goes to standard error
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    worker = _Worker(sys.argv[1])
    for line in requests:
        channel.write(json.dumps(worker.answer(line)) + "\n")
        channel.flush()


class _WrongReleaseError(Exception):
    """A generator returned something that is not a synthetic table; the text quotes no values."""


class _Worker:
    """A generator and the requests to it."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.generator: Any = None
        self.schema: dict[str, Any] = {}
        self.replayed: Any = None

    def answer(self, line: str) -> dict[str, Any]:
        request: Any = None
        try:
            request = json.loads(line)
            if request["op"] == "hello":
                return self._hello(request)
            if request["op"] == "synthesize":
                self._synthesize(request)
                return {"id": request["id"], "done": True}
            raise ValueError(f"unknown op {request['op']!r}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - every request has an answer
            is_shareable = isinstance(error, _WrongReleaseError)
            name = str(error) if is_shareable else type(error).__name__
            answer = {"error": name, "message": str(error), "at": _place(error)}
            answer["traceback"] = traceback.format_exc()[-MOST_TRACEBACK:]
            if isinstance(request, dict) and "id" in request:
                answer["id"] = request["id"]
            return answer

    def _hello(self, request: dict[str, Any]) -> dict[str, Any]:
        """Builds the generator, and describes it."""
        self.schema, self.replayed = request["schema"], None
        self.generator = _build(self.place, request)
        claim = getattr(self.generator, "claim", None)
        if claim is not None and not isinstance(claim, dict):
            unit = getattr(claim, "unit", None)
            claim = {"epsilon": claim.epsilon, "delta": claim.delta, "unit": unit}
        return {
            "protocol": PROTOCOL,
            "name": self.place.rpartition(":")[2],
            "claim": claim,
            "proof": getattr(self.generator, "proof", None),
            "seedable": bool(getattr(self.generator, "seedable", True)),
            "formats": ["csv", "arrow"] if _has("pandas") and _has("pyarrow") else ["csv"],
        }

    def _synthesize(self, request: dict[str, Any]) -> None:
        """Trains on the tables of a request, and writes the synthetic ones."""
        data, outputs, form = self._tables(request), request["output"], request["format"]
        rows, seed = request["rows"], request["seed"]
        model, observer = None, None
        if "dpaudit_listening" in sys.modules:  # a replay compares what the fit releases
            observer = importlib.import_module("dpaudit_listening.observe")
        if hasattr(self.generator, "fit"):
            model = self.generator.fit(data, seed=seed)
            model = self.generator if model is None else model
            if observer is not None:
                observer.end_fit()
            table = model.sample(rows, seed=request.get("sample_seed", seed))
        else:
            table = self.generator(data, rows, seed)
        several = self.schema.get("tables")
        if several and not (isinstance(table, dict) and set(table) == set(several)):
            raise _WrongReleaseError("sample gave no dict of the tables " + ", ".join(several))
        for part in table.values() if several else [table]:
            if not (hasattr(part, "to_csv") or isinstance(part, list)):
                kind = type(part).__name__
                raise _WrongReleaseError(f"sample gave {kind}, not a pandas DataFrame")
        if observer is not None:
            observer.observe(model, table)
        if outputs is None:
            return
        if not several:
            table, outputs = {"": table}, {"": outputs}
        for name, output in outputs.items():
            _write(table[name], output, form)

    def _tables(self, request: dict[str, Any]) -> Any:
        """The tables of a request; those of a replay are read once, and each fit has a copy."""
        files, form = request["data"], request["format"]
        if self.replayed is None or self.replayed[0] != files:
            if isinstance(files, dict):
                schemas = self.schema["tables"]
                data: Any = {
                    name: _read(files[name], form, schemas[name]["columns"]) for name in files
                }
            else:
                data = _read(files, form, self.schema["columns"])
            if "dpaudit_listening" not in sys.modules:
                return data
            prepare = getattr(self.generator, "dpaudit_prepare", None)
            self.replayed = files, data if prepare is None else prepare(data)
        return copy.deepcopy(self.replayed[1])


def _build(place: str, request: dict[str, Any]) -> Any:
    """Runs the file of FILE.py:NAME, and builds the generator."""
    path, _, name = place.rpartition(":")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    scope = {"__name__": os.path.splitext(os.path.basename(path))[0], "__file__": path}
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), scope)
    value, parameters = scope[name], dict(request["parameters"])
    if inspect.isclass(value):
        accepted = inspect.signature(value).parameters
        if "schema" in accepted:
            parameters.setdefault("schema", request["schema"])
        if not any(item.kind is item.VAR_KEYWORD for item in accepted.values()):
            for key in sorted(set(parameters) - set(accepted)):
                takes = ", ".join(other for other in accepted if other != "schema") or "none"
                raise TypeError(f"{name} has no parameter {key!r}; it takes: {takes}")
        return value(**parameters)
    if parameters:
        raise TypeError(f"{name} is not a class: it takes no parameters")
    return value


def _place(error: BaseException) -> str:
    """The innermost line outside this file and installed packages, as "gan.py:41 in fit"."""
    place = ""
    entry = error.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        is_ours = code.co_filename.startswith((__file__, STDLIB, REPLAY, "<frozen "))
        if not is_ours and "-packages" not in code.co_filename:
            file = os.path.basename(code.co_filename)
            place = f"{file}:{entry.tb_lineno} in {code.co_name}"
        entry = entry.tb_next
    return place


def _has(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def _read(path: str, form: str, columns: list[dict[str, Any]]) -> Any:
    """Reads a table from a file."""
    if form == "arrow":
        import pandas

        return pandas.read_feather(path)
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    described = {column["name"]: column for column in columns}
    columns_of_cells = zip(*rows) if rows else [()] * len(header)
    table = {
        name: _values(cells, described[name]) if name in described else _names(cells)
        for name, cells in zip(header, columns_of_cells)
    }
    if not _has("pandas"):
        return [dict(zip(header, row)) for row in zip(*table.values())]
    import pandas

    return pandas.DataFrame(table)


def _values(cells: Any, column: dict[str, Any]) -> list[Any]:
    """The cells of a column in the schema's types; None for a missing one."""
    value_of = {str(value): value for value in column.get("categories") or []}
    if not value_of and not column.get("format"):  # dates are text
        whole = column["kind"] == "integer"
        value_of = {cell: _number(cell, whole) for cell in set(cells)}
    return [value_of.get(cell, cell or None) for cell in cells]


def _names(cells: Any) -> list[Any]:
    """Names of units, or keys, as whole numbers if all are, else as text."""
    whole = all(cell.lstrip("-").isdigit() for cell in cells)
    return [int(cell) for cell in cells] if whole else list(cells)


def _number(cell: str, whole: bool) -> Any:
    if not cell:
        return None
    return int(cell) if whole and cell.lstrip("+-").isdigit() else float(cell)


def _write(table: Any, path: str, form: str) -> None:
    """Writes a table to a file."""
    if form == "arrow":
        table.reset_index(drop=True).to_feather(path)
    elif hasattr(table, "to_csv"):
        table.to_csv(path, index=False)
    else:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
