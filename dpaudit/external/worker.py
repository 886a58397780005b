#!/usr/bin/env python3
"""The reference worker of dpaudit-worker/1: runs a generator in an environment of its own.

    python worker.py FILE.py:NAME

NAME is a class (built with the parameters it is sent, and with `schema` if it asks for that), an
instance, or a function f(data, n_rows, seed). A class or instance has fit(data, seed=...) which
returns a model, or itself, with sample(n, seed=...). Tables are pandas DataFrames where pandas can
be imported, else lists of dicts. Standard library alone; Python 3.7 and later.
"""

import csv
import inspect
import io
import json
import os
import sys

PROTOCOL = "dpaudit-worker/1"


def main():
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the generator prints goes to standard error
    sys.stdout = sys.stderr
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def say(answer):
        channel.write(json.dumps(answer) + "\n")
        channel.flush()

    generator, columns = None, []
    for line in requests:
        request = {}
        try:
            request = json.loads(line)
            if request["op"] == "hello":
                columns = request["schema"]["columns"]
                generator, name = build(sys.argv[1], request)
                say(hello(generator, name))
            elif request["op"] == "synthesize":
                synthesize(generator, request, columns)
                say({"id": request["id"], "done": True})
            else:
                raise ValueError("unknown op " + repr(request["op"]))
        except BaseException as error:  # also what ends programs: the answer is owed
            said = {"error": type(error).__name__, "message": str(error)}
            if isinstance(request, dict) and "id" in request:
                said["id"] = request["id"]
            say(said)
            if isinstance(error, (KeyboardInterrupt, MemoryError)):
                raise


def build(place, request):
    path, _, name = place.rpartition(":")
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    scope = {"__name__": os.path.splitext(os.path.basename(path))[0], "__file__": path}
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), scope)
    value = scope[name]
    given = dict(request.get("parameters", {}))
    if inspect.isclass(value):
        if "schema" in inspect.signature(value).parameters:
            given.setdefault("schema", request["schema"])
        return value(**given), name
    if given:
        raise TypeError(name + " is not a class: it takes no parameters")
    return value, name


def hello(generator, name):
    claim = getattr(generator, "claim", None)
    if claim is not None and not isinstance(claim, dict):
        claim = {key: getattr(claim, key) for key in ("epsilon", "delta") if hasattr(claim, key)}
    seedable = bool(getattr(generator, "seedable", True))
    said = {"protocol": PROTOCOL, "name": name, "claim": claim, "seedable": seedable}
    said["formats"] = ["csv"]
    if pandas() is not None:
        try:
            import pyarrow  # noqa: F401

            said["formats"].append("arrow")
        except ImportError:
            pass
    return said


def synthesize(generator, request, columns):
    data = read(request["data"], request["format"], columns)
    rows, seed = request["rows"], request["seed"]
    if hasattr(generator, "fit"):
        model = generator.fit(data, seed=seed)
        table = (generator if model is None else model).sample(rows, seed=seed)
    else:
        table = generator(data, rows, seed)
    write(table, request["output"], request["format"])


def pandas():
    try:
        import pandas

        return pandas
    except ImportError:
        return None


def read(path, form, columns):
    pd = pandas()
    if form == "arrow":
        return pd.read_feather(path)
    numeric = {c["name"] for c in columns if c["kind"] in ("continuous", "integer")}
    known = {c["name"]: {text(v): v for v in c.get("categories") or []} for c in columns}
    with open(path, newline="", encoding="utf-8") as file:
        rows = [
            {name: value_of(cell, name in numeric, known.get(name, {})) for name, cell in row.items()}
            for row in csv.DictReader(file)
        ]
    return rows if pd is None else pd.DataFrame(rows, columns=[c["name"] for c in columns])


def value_of(cell, numeric, known):
    if cell == "" and "" not in known:
        return None
    if not numeric:
        return known.get(cell, cell)
    number = float(cell)
    return int(cell) if cell.lstrip("+-").isdigit() else number


def text(value):
    return str(value)


def write(table, path, form):
    if form == "arrow":
        table.reset_index(drop=True).to_feather(path)
        return
    if hasattr(table, "to_csv"):
        table.to_csv(path, index=False)
        return
    names = list(table[0]) if table else []
    with io.open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([["" if row[n] is None else row[n] for n in names] for row in table])


if __name__ == "__main__":
    main()
