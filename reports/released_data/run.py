"""What tests of one released table find of memorisers, GANs, marginals and noise, and how falsely.

Usage: python -m reports.released_data.run [releases] [splits] [prepared] [--data DIR] [--quick]

Writes results/releases/TABLE-GENERATOR.json, results/splits.json and results/prepared.json; all are
resumed. README.md shows them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import beta

import dpaudit
from dpaudit.errors import DpauditError
from dpaudit.formatting import clipped
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.model.tables import load_schema, load_table
from dpaudit.plugins.named import named_generator
from dpaudit.released_data.audit import canaries_of
from dpaudit.released_data.conclusion import linkage_confidence, membership_level
from dpaudit.released_data.copies import ClosestDistances
from dpaudit.released_data.linkage import Linkage, find_linkage
from dpaudit.released_data.membership import (
    CONTROL_LEVEL,
    draw_fitting_part,
    phantom_p_value,
    recognise,
    released_bound,
)
from dpaudit.released_data.rows import encode, find_nearest
from dpaudit.released_data.scores import CLOSEST, membership_scores
from dpaudit.released_data.tables import load_released
from dpaudit.seeds import Stream, rng_of
from dpaudit.usefulness.run import UniformRows
from reports import markdown
from reports.cervical import SCHEMA_FILE, published_table
from reports.command import Run, StudyParser, start, write_json
from reports.data import table_file
from reports.released_data.preparations import WAYS, Prepared
from reports.streams import stream_of

SEED = 1717
CONFIDENCE = 0.95
ADULT, CERVICAL = "adult", "cervical-cancer"
TABLES = (ADULT, CERVICAL)
PAGE = Path(__file__).with_name("README.md")
COPIED = (0.01, 0.03, 0.1, 0.3)
PRIVATE = (
    *("pate-gan-marginals", "original", "updated", "synthcity", "turing", "borealis"),
    "smartnoise",
)
SCALED, BEYOND = ("updated", "borealis"), ("turing",)
"""Publish numbers scaled to [0, 1]; publish numbers beyond the bounds."""

EPSILON = 1.0
ROWS_OF_A_SPLIT = 700
"""Rows that are split in each of the many splits."""

FAMILIES = ("copies", "outliers", "inference")
"""What shares the error probability that the test of membership leaves."""

MOST_OF_AN_ERROR = 160
"""Characters of an error that the results keep."""

Maker = Callable[[pd.DataFrame, int], pd.DataFrame]


class Size(NamedTuple):
    """How large the study is.

    Attributes:
        splits: Splits of each table.
        linked: Those of them in which copies, rare values and guesses are tested too.
        rows: Rows of each table, at most.
        names: Generators of the registry on each table.
        prepared: Honest releases of each way to prepare a table, by the rows of each part.
    """

    splits: int
    linked: int
    rows: int | None
    names: dict[str, tuple[str, ...]]
    prepared: dict[str, dict[int, int]]


SIMULATED = "simulated"
COPIED_EVERY = 10
"""Honest releases for each that copies train rows."""
FULL = Size(
    500,
    250,
    None,
    dict.fromkeys(TABLES, (*PRIVATE, "marginals")),
    {CERVICAL: {286: 300}, SIMULATED: {500: 300}, ADULT: {2000: 300, 8000: 20}},
)
QUICK = Size(2, 1, 400, {CERVICAL: ("marginals",), ADULT: ()}, {CERVICAL: {100: 1}})


class StudyTable(NamedTuple):
    """A table and its schema."""

    data: pd.DataFrame
    schema: Schema


class Memoriser(NamedTuple):
    """Draws each column by itself from train, but copies each row whole with some probability."""

    share: float

    def __call__(self, train: pd.DataFrame, seed: int) -> pd.DataFrame:
        """Makes as many rows as there are train rows."""
        rng = rng_of(seed, "memoriser")
        drawn = pd.DataFrame({name: rng.permutation(train[name].to_numpy()) for name in train})
        copied = rng.random(len(train)) < self.share
        drawn[copied] = train[copied]
        return drawn


def tables(run: Run, size: Size) -> dict[str, StudyTable]:
    """Both tables; the schema of Adult is read off it."""
    cervical = published_table(run.data)
    adult = load_table(table_file(ADULT, run.data))
    found = {
        CERVICAL: StudyTable(cervical, load_schema(SCHEMA_FILE, lambda: cervical)),
        ADULT: StudyTable(adult, Schema.infer(adult)),
    }
    return {
        name: StudyTable(of.schema.canonical(of.data[: size.rows]), of.schema)
        for name, of in found.items()
    }


def makers(table: StudyTable, names: tuple[str, ...]) -> Iterator[tuple[str, Maker]]:
    """Whatever makes a synthetic table of train, by name."""
    for share in COPIED:
        yield f"memoriser-{share:g}", Memoriser(share)
    for name in names:
        yield name, of_registry(name, table.schema)
    noise = UniformRows(table.schema)
    yield "noise", lambda train, seed: noise.sample(len(train), seed=seed)


def of_registry(name: str, schema: Schema) -> Maker:
    """A generator of the registry at its defaults, but for epsilon."""

    def make(train: pd.DataFrame, seed: int) -> pd.DataFrame:
        named = named_generator(name, {"epsilon": EPSILON}, {"schema": schema})
        model = named.generator.fit(train, seed=seed)
        drawn: pd.DataFrame = model.sample(len(train), seed=seed + 1)
        return within_bounds(drawn, schema, name) if name in (*SCALED, *BEYOND) else drawn

    return make


def within_bounds(table: pd.DataFrame, schema: Schema, name: str) -> pd.DataFrame:
    """A published generator's table as whoever audits it would put it right, else it is refused."""
    found = table.copy()
    for column in schema.columns:
        if column.kind.numeric:
            low, high = column.bounds
            values = found[column.name].astype(float)
            values = (low + values * (high - low) if name in SCALED else values).clip(low, high)
            found[column.name] = values.round() if column.kind is Kind.INTEGER else values
    return found


def releases(run: Run, size: Size, found: dict[str, StudyTable]) -> None:
    """One training of each generator on one split of each table, audited with its coins."""
    for name, table in found.items():
        split = dpaudit.split(table.data, seed=SEED)
        for maker, make in makers(table, size.names[name]):
            path = run.out / "releases" / f"{name}-{maker}.json"
            if path.exists():
                continue
            try:
                document = release(name, maker, make, split, table.schema)
            except DpauditError as error:
                reason = clipped(str(error), MOST_OF_AN_ERROR)
                document = {"table": name, "generator": maker, "error": reason}
            write_json(path, document)
            print(f"{name}, {maker}: {document.get('error') or document['result']['finding']}")


def release(
    table: str, maker: str, make: Maker, split: dpaudit.CoinSplit, schema: Schema
) -> dict[str, Any]:
    """Trains one generator on train and audits its table.

    Raises:
        DpauditError: If it fails, or its table does not fit the schema.
    """
    began = time.perf_counter()
    synthetic = make(split.train, Stream(SEED, table, stream_of(maker)).seed())
    made, cpu = time.perf_counter(), time.process_time()
    result = dpaudit.audit_data(
        synthetic,
        split.train,
        split.holdout,
        coins=split.coins,
        schema=schema,
        confidence=CONFIDENCE,
        seed=SEED,
    )
    return {
        "table": table,
        "generator": maker,
        "training_seconds": round(made - began, 1),
        "audit_seconds": round(time.perf_counter() - made, 1),
        "audit_cpu_seconds": round(time.process_time() - cpu, 1),
        "closest_record": closest_record(synthetic, split, schema),
        "result": result.to_document(),
    }


def closest_record(
    synthetic: pd.DataFrame, split: dpaudit.CoinSplit, schema: Schema
) -> dict[str, float]:
    """The distance to the closest record as panels show it: shares and 5 % quantiles.

    `nearer_to_train` is the share of synthetic rows nearer to train than to the hold-out, of which
    as many rows are taken; ties count half. Panels ask that it is about one half.
    """
    rows = min(len(split.train), len(split.holdout))
    drawn = encode(schema.canonical(synthetic), schema)
    parts = (encode(schema.canonical(of[:rows]), schema) for of in (split.train, split.holdout))
    train, holdout = (find_nearest(drawn, part, neighbours=1).distances[:, 0] for part in parts)
    share = (train < holdout).mean() + (train == holdout).mean() / 2
    low = {"train": train, "holdout": holdout}
    return {"nearer_to_train": round(float(share), 4)} | {
        f"low_{name}": round(float(np.quantile(of, 0.05)), 4) for name, of in low.items()
    }


def splits(run: Run, size: Size, found: dict[str, StudyTable]) -> None:
    """Many splits: what a memoriser's phantoms, and a table of other rows, are taken for."""
    path = run.out / "splits.json"
    done: dict[str, list[dict[str, Any]]] = json.loads(path.read_text()) if path.exists() else {}
    for name, table in found.items():
        for number in range(len(done.setdefault(name, [])), size.splits):
            done[name].append(one_split(name, table, number, linked=number < size.linked))
            if len(done[name]) % 10 == 0 or number == size.splits - 1:
                write_json(path, done, indent=0)


def one_split(name: str, table: StudyTable, number: int, *, linked: bool) -> dict[str, Any]:
    """The p-values of tests that must find nothing, and of one that should find something.

    `phantom`: between halves of the hold-out, of a memoriser of a tenth of train. `stranger`: the
    whole test of a table that is made of rows of the same population that are neither in train nor
    in the hold-out, and `stranger_bound` its bound; where asked for, `copies`, `outliers` and
    `inference` of that table too. `memoriser`: the test of the memoriser.
    """
    seed = Stream(SEED, name, "split", number).seed()
    people = table.data.sample(frac=1.0, random_state=seed)[: 2 * ROWS_OF_A_SPLIT]
    half = len(people) // 2
    split = dpaudit.split(people[:half].reset_index(drop=True), seed=seed)
    memoriser, found = Memoriser(0.1), {}
    for kind, synthetic in (
        ("memoriser", memoriser(split.train, seed)),
        ("stranger", memoriser(people[half:].reset_index(drop=True), seed)),
    ):
        released = load_released(split.train, synthetic, split.holdout, schema=table.schema)
        rows = canaries_of(released, split.coins, seed=seed)
        inside = rows.inside
        scores = membership_scores(rows.real, released.synthetic, table.schema, of=rows.rows).seen
        fitting = draw_fitting_part(len(rows.rows), rng_of(seed, "parts"))
        tested = recognise(scores, inside, fitting, rng_of(seed, kind), confidence=CONFIDENCE)
        found[kind] = tested.p_value
        if kind == "stranger":
            found["stranger_bound"] = released_bound(tested.right, delta=0.0, confidence=CONFIDENCE)
            if linked:
                apart = -scores[CLOSEST]
                linkage = find_linkage(
                    released,
                    members=rows.members,
                    others=rows.others,
                    closest=ClosestDistances(apart[inside], apart[~inside]),
                    seed=seed,
                    confidence=CONFIDENCE,
                )
                found |= linkage_p_values(linkage)
        else:
            ghost = phantom_p_value(scores, inside, rng_of(seed, "phantom"))
            found["phantom"] = 1.0 if ghost is None else ghost
    return found


def prepared(run: Run, size: Size, found: dict[str, StudyTable]) -> None:
    """What audits without coins conclude of releases that know nothing of train, by preparation.

    Of every tenth release there is one with copies of some train rows, too. Results are resumed.
    """
    path = run.out / "prepared.json"
    done: dict[str, list[str]] = json.loads(path.read_text()) if path.exists() else {}
    people = {SIMULATED: simulated()} | {
        name: without_weights(table) for name, table in found.items()
    }
    cases = [
        (name, rows, many) for name, sizes in size.prepared.items() for rows, many in sizes.items()
    ]
    most = max(many for _, _, many in cases)
    for number in range(most):
        for (name, rows, many), copied, way in product(cases, (0.0, COPIED[0]), WAYS):
            findings = done.setdefault(f"{name}|{rows}|{copied:g}|{way}", [])
            every = COPIED_EVERY if copied else 1
            if number < many and number == len(findings) * every:
                one = one_prepared(name, people[name], way, rows, number, copied=copied)
                findings.append(one)
        if (number + 1) % COPIED_EVERY == 0 or number + 1 == most:
            write_json(path, done, indent=0)
            print(f"{number + 1} releases", flush=True)


def one_prepared(
    name: str, people: StudyTable, way: str, rows: int, number: int, *, copied: float
) -> str:
    """The finding of an audit without coins of a release of other people.

    Some of the rows of train stand in it where they are asked for.
    """
    stream = Stream(SEED, name, f"{way}, {rows} rows", number)
    rng = stream.rng()
    shuffled = people.data.iloc[rng.permutation(len(people.data))].reset_index(drop=True)
    drawn = Prepared(*(of.reset_index(drop=True) for of in WAYS[way](shuffled, rows, rng)))
    release = drawn.release
    if copied:
        chosen = rng.permutation(len(drawn.train))[: max(1, round(copied * len(drawn.train)))]
        release = pd.concat([release, drawn.train.iloc[chosen]], ignore_index=True)
    result = dpaudit.audit_data(
        release,
        drawn.train,
        drawn.holdout,
        schema=people.schema,
        confidence=CONFIDENCE,
        secrets=people.schema.names[-1:],
        seed=stream.seed(),
    )
    return str(result.finding)


def without_weights(table: StudyTable) -> StudyTable:
    """Adult without its sampling weights, whose values hardly repeat, so that rows do."""
    names = [name for name in table.schema.names if name != "fnlwgt"]
    columns = tuple(one for one in table.schema.columns if one.name in names)
    return StudyTable(table.data[names], replace(table.schema, columns=columns))


def simulated() -> StudyTable:
    """Six normal columns, and one record that one in a hundred rows is."""
    rng = rng_of(SEED, SIMULATED)
    values = rng.normal(size=(30_000, 6)).clip(-9.0, 9.0)
    values[rng.random(len(values)) < 0.01] = 0.0
    table = pd.DataFrame(values, columns=[f"x{place}" for place in range(6)])
    columns = (
        Column(name=name, kind=Kind.CONTINUOUS, lower=-9.0, upper=9.0) for name in table.columns
    )
    return StudyTable(table, Schema(columns=tuple(columns)))


def linkage_p_values(found: Linkage) -> dict[str, float]:
    """The least p-value of each family, times its tests: it proves something at most at that level.

    Half of the level of outliers is for the ends of all columns, half for their values.
    """
    copies = [one.records.p_value for one in (found.copies.exact, *found.copies.near)]
    values = [one.repeated.p_value for one in found.outliers.columns]
    guesses = [one.right.p_value for one in found.inference]
    ends = 1.0 if found.outliers.ends is None else 2.0 * found.outliers.ends.p_value
    return {
        "copies": _least(copies),
        "outliers": min(ends, 2.0 * _least(values)),
        "inference": _least(guesses),
    }


def _least(p_values: Sequence[float | None]) -> float:
    """Bonferroni's p-value of a family; where nothing can be tested it is 1."""
    return min(1.0, len(p_values) * min((p for p in p_values if p is not None), default=1.0))


def page(results: Path) -> str:
    """The tables of README.md, made from the results."""
    rows = []
    for path in sorted((results / "releases").glob("*.json"), key=_place):
        found = json.loads(path.read_text())
        if "error" in found:
            rows.append((found["table"], found["generator"], found["error"], *["-"] * 6))
            continue
        result, panel = found["result"], found["closest_record"]
        membership = result["membership"]
        rate = membership["rates"][1]
        rows.append(
            (
                found["table"],
                found["generator"],
                result["finding"],
                f"{membership['p_value']:.4f}",
                f"{rate['flagged_members'] / rate['members']:.3f}",
                f"{rate['flagged_others'] / rate['others']:.3f}",
                f"{result['bound']['proved']:.2f}",
                len(result["riskiest"]),
                f"{panel['nearer_to_train']:.3f}",
            )
        )
    heads = ("table", "generator", "finding", "p", "train flagged at 1 %", "hold-out flagged")
    releases = markdown.table((*heads, "proved epsilon", "rows named", "nearer to train"), rows)
    return "\n".join(
        [
            releases,
            _splits_table(results / "splits.json"),
            _prepared_table(results / "prepared.json"),
        ]
    )


def _prepared_table(path: Path) -> str:
    """What is found of honest releases and of those with copies, by way and table."""
    found: dict[str, list[str]] = json.loads(path.read_text())
    groups: dict[tuple[str, str], dict[str, list[str]]] = {}
    for case, findings in found.items():
        table, size, copied, way = case.split("|")
        kind = "copied" if float(copied) else "honest"
        for name in (f"{table}, {size} rows", "all"):
            groups.setdefault((way, name), {"honest": [], "copied": []})[kind] += findings
    rows = []
    for (way, name), of in groups.items():
        many, all_of_them = of["honest"].count("leak"), len(of["honest"])
        open_ = sum(of["honest"].count(kind) for kind in ("inconclusive", "invalid"))
        rows.append(
            (
                way,
                name,
                f"{many} of {all_of_them}",
                f"{_at_most(many, all_of_them):.3f}",
                f"{open_} of {all_of_them}",
                f"{of['copied'].count('leak')} of {len(of['copied'])}",
            )
        )
    rows.sort(key=lambda row: (list(WAYS).index(row[0]), row[1] != "all", row[1]))
    heads = ("prepared", "table", "called a leak", "at most", "inconclusive or invalid")
    return markdown.table((*heads, "1 % copied: leak"), rows)


def _at_most(many: int, all_of_them: int) -> float:
    """Upper limit at 99 % confidence on a probability, of which so many draws came true."""
    return float(beta.ppf(0.99, many + 1, all_of_them - many)) if many < all_of_them else 1.0


def _splits_table(path: Path) -> str:
    """False alarms at 5 % over all splits, and how many there are at most with 99 % confidence."""
    found: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())
    found["both"] = [row for rows in found.values() for row in rows]
    level, rows = round(1.0 - CONFIDENCE, 9), []
    others = 1.0 - linkage_confidence(CONFIDENCE)
    for table, of in found.items():
        linked = [row for row in of if "copies" in row]
        for what, seen in (
            ("two halves of the hold-out, p at most 0.05", [row["phantom"] <= level for row in of]),
            ("the same, p at most 0.01", [row["phantom"] <= CONTROL_LEVEL for row in of]),
            ("a table of other rows, p at most 0.05", [row["stranger"] <= level for row in of]),
            ("the same, bound above 0", [row["stranger_bound"] > 0 for row in of]),
            ("the same, copies, p at most 0.05", [row["copies"] <= level for row in linked]),
            ("the same, rare values, p at most 0.05", [row["outliers"] <= level for row in linked]),
            ("the same, guesses, p at most 0.05", [row["inference"] <= level for row in linked]),
            (
                "the same, a leak is found by any of them at 0.05 together",
                [
                    row["stranger"] <= membership_level(CONFIDENCE)
                    or min(row[part] for part in FAMILIES) <= others / len(FAMILIES)
                    for row in linked
                ],
            ),
            ("a tenth of train copied, p at most 0.05", [row["memoriser"] <= level for row in of]),
        ):
            many, all_of_them = sum(seen), len(seen)
            low = beta.ppf(0.01, many, all_of_them - many + 1) if many else 0.0
            high = _at_most(many, all_of_them)
            rows.append((table, what, f"{many} of {all_of_them}", f"{low:.3f}", f"{high:.3f}"))
    return markdown.table(("table", "what is tested", "found", "at least", "at most"), rows)


def _place(path: Path) -> tuple[bool, bool, str]:
    """Cervical Cancer first, memorisers before generators."""
    return path.name.startswith(ADULT), "memoriser" not in path.name, path.name


PARTS = {"releases": releases, "splits": splits, "prepared": prepared}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the parts that are asked for."""
    parser = StudyParser(__file__, __doc__, parts=tuple(PARTS), tables=TABLES)
    run = parser.run_of(parser.parse_args(arguments))
    size = QUICK if run.quick else FULL
    found = tables(run, size)
    for part in run.parts:
        PARTS[part](run, size, found)
    if run.is_whole:
        markdown.replace_table(PAGE, page(run.out))


if __name__ == "__main__":
    start(main)
