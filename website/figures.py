"""Tables from the code and from the committed results of the studies; nobody types them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

from dpaudit.bounds.table import BOUNDS
from reports import markdown
from reports.calibration import pages as calibration
from reports.calibration.audits import rates
from reports.pate_gan_audit.access_settings import REFERENCE
from reports.pate_gan_audit.published import SIX
from website import released

ROOT: Final = Path(__file__).resolve().parents[1]
_RESULTS: Final = ROOT / "reports"


def _read(study: str, file: str) -> Any:
    return json.loads((_RESULTS / study / "results" / file).read_text(encoding="utf-8"))


def bounds_table() -> str:
    """Every bound and estimate, as `dpaudit.bounds.table` has them."""
    rows = [
        (f"`{one.key}`", one.label, "valid" if one.valid else "estimate", one.source)
        for one in BOUNDS
    ]
    return markdown.table(("key", "label", "kind", "source"), rows)


def calibration_table() -> str:
    """The worst false-violation rate of every rule."""
    return calibration.worst(_read("calibration", "rules.json")["cells"])


def paths_table() -> str:
    """How often each path of an audit flags honest mechanisms, and what it catches."""
    found = _read("calibration", "paths.json")
    return f"{calibration.headline(found)}\n{calibration.every_path(found)}"


def default_audits() -> str:
    """How often whole default audits of honest generators proved too much, as a sentence."""
    found = _read("calibration", "defaults.json")
    total = rates(found)[-1]
    above = sum(case["above"] for case in found["cases"].values())
    return (
        f"Of {total.draws:,} default audits ({found['shadow_models']} shadow models) of "
        f"{len(found['cases'])} generators at exactly their claim, the reference PATE-GAN among "
        f"them, {above} proved more than is true: with 99 % confidence, "
        f"{100 * total.low:.2g} to {100 * total.high:.2g} % do.\n"
    )


_BEST: Final = "the best of ten, as if it were the only one"
_CHOSEN: Final = "the threshold is chosen on what is counted"
_WRONG: Final = {
    "Gaussian (GDP) estimate on other mechanisms": "the noise is taken to be Gaussian",
    "largest ratio over thresholds, no interval": "an estimate without an interval",
    "best of ten attacks, uncorrected (exact)": _BEST,
    "joint_beta": "a Bayesian posterior taken for a confidence level",
    "DKW band with Delta-Siege's constant": "a wrong constant in the DKW inequality",
    "Clopper-Pearson looked at every 10 pairs": "recomputed until it exceeds the claim",
    "best of ten attacks, uncorrected (clopper_pearson)": _BEST,
    "best threshold on the test data (Jeffreys)": _CHOSEN,
    "best threshold on the test data (Clopper-Pearson)": _CHOSEN,
    "all of alpha for each rate": "both error rates get all of the error probability",
    "jeffreys": "limits that hold on average, not in every case",
}
"""What is wrong with each rule of other tools."""


def others_table() -> str:
    """What rules of other tools do to honest mechanisms."""
    cells = _read("calibration", "rules.json")["cells"]
    others = dict.fromkeys(cell["rule"] for cell in cells if not cell["ours"])
    worst = {rule: calibration.worst_cell(cells, rule, 0.05) for rule in others}
    rows = [
        (
            rule,
            _WRONG[rule],
            f"{100 * cell['rate']:.1f} %",
            f"{cell['where']}{'' if cell['draws'] else ' (enumerated)'}",
        )
        for rule, cell in sorted(worst.items(), key=lambda pair: -pair[1]["rate"])
    ]
    heads = ("rule", "what is wrong", "exceeds the true ε, at nominal 5 %", "where")
    return markdown.table(heads, rows)


def access_table() -> str:
    """What is proved of the six published PATE-GANs at each access level."""
    rows = []
    for name in (*SIX, REFERENCE):
        proved = _read("pate_gan_audit", f"access/worst-{name}.json")["proved"]
        words = "their common trainer, nothing wrong" if name == REFERENCE else f"`{name}`"
        rows.append((words, *(f"{proved[level]:.2f}" for level in ("output", "model", "released"))))
    return markdown.table(("", "output", "model", "released"), rows)


def training_table() -> str:
    """What a model and iteration of PATE-GAN costs."""
    found = _read("performance", "training.json")
    micro, speedup = found["microseconds_per_iteration"], found["speedup"]
    rates = found["fit_many"]
    sequential = found["sequential_models_per_second"]
    rows = [
        (
            f"{peer['peer']} {peer['version']} (a public peer, in double precision)",
            f"{peer['microseconds_per_iteration']:,.0f}",
            f"{peer['models_per_second']:.3f}",
            f"{peer['models_per_second'] / sequential:.2f}",
        )
        for peer in found["peers"]
    ]
    rows += [
        (
            "our sequential oracle: modules, autograd, `torch.optim.Adam`",
            f"{micro['sequential']:,.0f}",
            f"{sequential:.3f}",
            "1",
        )
    ]
    for many in ("1", "8", "32", "64"):
        rows.append(
            (
                f"`fit_many`, M = {many}",
                f"{micro[many]:,.0f}",
                f"{rates[many]:.2f}",
                f"{speedup[many]:.1f}",
            )
        )
    most = found["arithmetic_floor_models_per_second"]
    rows.append(
        (
            "arithmetic alone, at the speed of one large matrix product",
            f"{1e3 / most:,.0f}",  # of 1000 iterations, in microseconds each
            f"{most:.1f}",
            f"{most / sequential:.0f}",
        )
    )
    heads = ("", "microseconds per model and iteration", "models per second", "times the oracle")
    return markdown.table(heads, rows)


def training_notes() -> str:
    """What else the training of PATE-GANs was measured on."""
    found = _read("performance", "training.json")
    small, [peer] = found["worst_case"], found["peers"]
    times, micro = small["speedup"]["1000"], small["microseconds_per_iteration"]["1000"]
    share = 100 * peer["accountant_share"]
    return (
        f"- On networks of a worst-case audit ({small['network']}), M = 1000 is {times:.0f} times "
        f"the oracle: {micro:.0f} microseconds, much of it in matrix products that are too small "
        "to use a processor well.\n"
        "- The peer does slightly more: its teachers have two hidden layers, each gets new "
        f"records, and its accountant runs in the loop ({share:.0f} % of its time).\n"
    )


def scaling_notes() -> str:
    """How the training of PATE-GANs grows."""
    found = _read("performance", "scaling.json")
    rows, columns, teachers = (found[name] for name in ("rows", "columns", "teachers"))

    def growth(of: dict[str, Any]) -> tuple[str, str, str]:
        """Exponents of time and of arithmetic; the speed beside that of one large product."""
        speed = of["megaflops"][-1] / of["microseconds"][-1] * 1e3
        share = speed / found["matrix_product_gflops"]
        exponents = of["last_exponent"], of["last_exponent_of_arithmetic"]
        return f"{exponents[0]:.2f}", f"{exponents[1]:.2f}", f"{100 * share:.0f} %"

    wide, arithmetic, speed = growth(columns)
    many, sums, slow = growth(teachers)
    times = rows["values"][-1] // rows["values"][0]
    more = 100 * (rows["microseconds"][-1] / rows["microseconds"][0] - 1)
    return (
        f"- **Rows**: {times} times as many cost {more:.0f} % more, because minibatches come from "
        "more distant memory; the arithmetic stays the same.\n"
        f"- **Columns**: time grows no faster than the arithmetic (exponent {wide} from "
        f"{columns['values'][-2]} to {columns['values'][-1]}, against {arithmetic}), in the end at "
        f"{speed} of the speed of a large matrix product.\n"
        f"- **Teachers**: from {teachers['values'][-2]} on, time grows in proportion (exponent "
        f"{many}). The arithmetic, part of which does not depend on teachers, grows slightly "
        f"slower ({sums}), in the end at {slow} of that speed: drawing minibatches takes time.\n"
        "- **Models at a time**: no gain beyond 32 here; the game asks each generator how many it "
        "trains fastest together.\n"
    )


def audit_table() -> str:
    """What whole audits cost."""
    rows = []
    for file, words in (
        ("audit-33.json", "2 x 1000 models, 33 iterations (where the published runs stopped)"),
        ("audit-1000.json", "2 x 1000 models, 1000 iterations"),
        ("audit-33-large.json", "2 x 10,000 models, 33 iterations, on a busy machine"),
    ):
        found = _read("performance", file)
        rows.append(
            (
                words,
                f"{found['seconds']:.0f} s",
                f"{found['cpu_seconds']:.0f} s",
                f"{found['peak_mib']:,.0f} MiB",
            )
        )
    return markdown.table(("", "wall time", "CPU time", "memory of all processes"), rows)


def features_table() -> str:
    """What features of synthetic tables cost."""
    found = _read("performance", "features.json")["seconds"]["686 x 29 continuous"]
    names = {
        "naive": "GroundHog, naive",
        "histogram": "GroundHog, histogram",
        "correlation": "GroundHog, correlation",
        "ensemble": "GroundHog, ensemble",
        "query-target": "query-target",
    }
    rows = [
        (words, f"{found[key]['features']:.2f}", f"{found[key]['features_many']:.2f}")
        for key, words in names.items()
    ]
    return markdown.table(("", "one table at a time", "as a stack"), rows)


def default_audit_table() -> str:
    """What is left of an audit whose generator costs nothing."""
    found = _read("performance", "default-audit.json")
    rows = [
        (
            str(one["models"]),
            f"{one['coordinator']:.1f}",
            f"{one['workers']:.1f}",
            f"{one['coordinator'] + one['workers']:.1f}",
        )
        for one in found["audits"]
    ]
    return markdown.table(("shadow models", "coordinator", "workers", "together"), rows) + _at(
        found
    )


def forest_table() -> str:
    """What the forest of the default classifier costs."""
    rows = [
        (
            f"{one['trials']:,.0f}",
            f"{1e3 * one['seconds']:.0f} ms",
            f"{1e3 * one['sklearn_seconds']:.0f} ms",
            f"{one['auc']:.2f}",
            f"{one['sklearn_auc']:.2f}",
        )
        for one in _read("performance", "default-audit.json")["forests"]
    ]
    heads = ("trials", "ours", "scikit-learn", "AUC, ours", "AUC, scikit-learn")
    return markdown.table(heads, rows)


def generators_table() -> str:
    """What a model of each of our generators costs."""
    found = _read("performance", "generators.json")
    rows = [
        (
            f"`{one['generator']}`",
            str(one["together"]),
            _ms(one["training_ms"]),
            _ms(one["sampling_ms"]),
        )
        for one in found["generators"]
    ]
    heads = ("generator", "models together", "training, each", "sampling 569 records, each")
    return markdown.table(heads, rows) + _at(found)


def pytest_table() -> str:
    """What the pytest plugin costs."""
    found = _read("performance", "pytest.json")
    start, audits = found["start_up"], found["audits"]
    rows = [("no audit, without the plugin", f"{start['without']:.2f} s")]
    rows += [("no audit, with it", f"{start['without'] + start['difference']:.2f} s")]
    rows += [
        (f"one audit, `--dpaudit-scale {one['scale']}`", f"{one['cpu_seconds']:.1f} s")
        for one in audits
    ]
    return markdown.table(("session", "CPU time"), rows) + _at(found)


def commands_table() -> str:
    """What commands cost, as programs of their own."""
    found = _read("performance", "commands.json")
    rows = [
        # measured before the command had this name
        (f"`{one['command'].replace(' plan ', ' audit --plan ')}`", f"{one['cpu_seconds']:.1f} s")
        for one in found["commands"]
    ]
    rows.append(("the README's first audit", f"{found['first_audit']['cpu_seconds']:.0f} s"))
    return markdown.table(("command", "CPU time"), rows) + _at(found)


def replay_table() -> str:
    """What listening costs a fit."""
    found = _read("performance", "replay.json")
    rows = [
        (
            f"`{one['generator']}`",
            f"{one['plain_cpu']:.3g} s",
            f"{one['world_cpu']:.3g} s",
            f"{one['ratio']:.1f}",
            f"{one['coordinator_cpu']:.2g} s",
        )
        for one in found["rows"]
    ]
    heads = ("generator", "a plain fit", "a world in a replay", "ratio", "coordinator")
    return markdown.table(heads, rows) + _at(found)


_TABLES_SHOWN: Final = {
    "adult": "Adult as it is (32,561 × 15, strings and missing values)",
    "credit": "a fifth of Credit Card Fraud (56,962 × 30)",
}
_GAMES_SHOWN: Final = {
    "two worlds": "two worlds, 100 models",
    "sequential": "sequential, to the end",
    "one run": "one run, 1,000 canaries",
}


def real_tables() -> str:
    """What audits of large real tables cost."""
    rows = [
        (
            _TABLES_SHOWN[one["table"]],
            _GAMES_SHOWN[one["game"]],
            f"{one['foretold']:,.0f} s",
            f"{one['seconds']:,.0f} s",
            f"{one['MiB']:,} MiB",
        )
        for one in _read("performance", "real-tables.json")["audits"]
    ]
    return markdown.table(("table", "game", "estimated", "measured", "memory"), rows)


def _ms(value: float) -> str:
    return f"{float(f'{value:.2g}'):g} ms"


def _at(found: dict[str, Any]) -> str:
    return f"\nMeasured on 2 cores at a load average of {found['load']:.0f}.\n"


def released_table() -> str:
    """What audits of released tables cost."""
    rows = []
    for file, words in (
        ("released-adult.json", "Adult, one row in a hundred kept"),
        ("released-rows.json", "12 columns, one row in a hundred kept"),
    ):
        found = _read("performance", file)
        audit, split, load = found["audit"], found["split"], found["load_average"]
        rows.append(
            (
                words,
                *(f"{found['rows'][name]:,}" for name in ("synthetic", "train", "holdout")),
                f"{split['cpu_seconds']:,.0f} s + {audit['cpu_seconds']:,.0f} s",
                f"{split['seconds']:,.0f} s + {audit['seconds']:,.0f} s",
                f"{min(load):.0f} to {max(load):.0f}",
                f"{max(audit['peak_mib'], split['peak_mib']):,} MiB",
                f"{found['proved']:.2f}",
            )
        )
    heads = ("", "synthetic", "train", "hold-out", "CPU time, split + audit", "wall time")
    return markdown.table((*heads, "load of the machine", "peak memory", "epsilon ≥"), rows)


def copies_sentence() -> str:
    """What is found of a release that keeps one row of Adult in a hundred, and the panel says."""
    result = _read("released_data", "releases/adult-memoriser-0.01.json")["result"]
    copies, panel = result["linkage"]["copies"]["exact"]["records"], result["linkage"]["panel"]
    rare = {one["column"]: one["repeated"] for one in result["linkage"]["outliers"]["columns"]}
    weights = rare["fnlwgt"]["train"]
    return (
        "With Adult split by `dpaudit split` and every column permuted but for 1 % of the rows, "
        f"which are copied ({copies['train']['found']} of {copies['train']['of']:,} train records "
        f"have a copy): ε ≥ {result['bound']['proved']:.2f} at 95 %, at least {copies['at_least']} "
        f"copies, and {weights['found']:,} of {weights['of']:,} values of `fnlwgt` that one train "
        "record has, which permuting a column repeats and no row-wise attack sees. The distance "
        f"panel {'passes' if panel['passes'] else 'does not pass'}: "
        f"{100 * panel['nearer_to_train']:.1f} % of synthetic records are nearer to a train record "
        "than to a hold-out record.\n"
    )


def mu_sentence() -> str:
    """What limits on mu were, of a Gaussian mechanism in its own currency."""
    found = [
        one
        for one in _read("currency", "limits.json")
        if (one["release"], one["quantity"]) == ("noisy marginals", "mu")
    ]
    proved, other = (median(one[key] for one in found) for key in ("proved", "clopper_pearson"))
    return (
        f"In {len(found)} audits of noisy marginals of μ = {found[0]['true']:g}\n"
        "([currency](../reports/currency/README.md), 4,000 scored models each) the exact limit\n"
        f"on μ has the median {proved:.3f}, Clopper-Pearson {other:.3f}.\n"
    )


TABLES: Final[dict[tuple[str, str], Callable[[], str]]] = {
    ("calibration.md", "paths"): paths_table,
    ("calibration.md", "rules"): calibration_table,
    ("calibration.md", "audits"): default_audits,
    ("explanations/other-tools.md", "others"): others_table,
    ("explanations/access-levels.md", "access"): access_table,
    ("performance.md", "training"): training_table,
    ("performance.md", "training-notes"): training_notes,
    ("performance.md", "scaling"): scaling_notes,
    ("performance.md", "audits"): audit_table,
    ("performance.md", "default"): default_audit_table,
    ("performance.md", "forest"): forest_table,
    ("performance.md", "generators"): generators_table,
    ("performance.md", "pytest"): pytest_table,
    ("performance.md", "commands"): commands_table,
    ("performance.md", "replay"): replay_table,
    ("performance.md", "features"): features_table,
    ("performance.md", "real-tables"): real_tables,
    ("performance.md", "released"): released_table,
    ("released-data.md", "copies"): copies_sentence,
    ("released-software.md", "methods"): released.methods_table,
    ("released-software.md", "counts"): released.methods_sentence,
    ("statistics.md", "bounds"): bounds_table,
    ("statistics.md", "mu"): mu_sentence,
}
"""The tables by page and mark: `<!-- figures: MARK -->` stands before and after each."""


def filled(page: str, text: str) -> str:
    """A page with its tables written again.

    Args:
        page: Its path below `docs`.
        text: What it holds now.

    Raises:
        ValueError: If a mark is not there exactly twice, or a figure is left that nothing fills.
    """
    for (where, name), made in TABLES.items():
        if where != page:
            continue
        mark = f"<!-- figures: {name} -->"
        before, _, after = text.split(mark)
        text = f"{before}{mark}\n{made()}{mark}{after}"
    markdown.require_filled(text, page)
    return text
