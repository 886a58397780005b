"""README.md and the figures, written from the results alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reports.command import Run, write_text
from reports.markdown import bullets, number, picture, table
from reports.pate_gan_audit import access_pages, findings, matrix, pictures
from reports.pate_gan_audit.average import REFERENCE
from reports.pate_gan_audit.kept import Record, read
from reports.pate_gan_audit.published import AVERAGE, EPSILON, PARTITIONS, SIX, WORST, Row
from reports.pate_gan_audit.setting import HARNESS, Game
from reports.pate_gan_audit.worst import NULLS

Part = Mapping[str, Record]
FIGURES = "figures"
PARTS = ("tables", "settings", "training", "average", "worst", "sequential", "remains",
         "access", "exact")  # fmt: skip

INTRODUCTION = """\
# Six published PATE-GANs, audited again

Ganev, Annamalai and De Cristofaro (TMLR 2025, "The Elusive Pursuit of Reproducing PATE-GAN")
audited six implementations of PATE-GAN at (1, 1e-5) and found all of them to leak. Here their
Tables 2 and 3 and Figures 2 to 5 and 12 are done again with dpaudit, on implementations built again
from the description and from what the released code was seen to do (none of it is copied): one
trainer, and a switch for each deviation. Every audit is run **as published** and in a **valid
game**, whose two worlds differ in one record and in nothing else: the same public bounds, the same
number of rows. As published means bounds read off each
world's table, by the implementation itself (original, updated, synthcity, borealis) or by the
harness (turing, smartnoise), and in the worst case 4 rows asked in one world and 5 in the other.
Beyond the paper, [one section](#six-in-a-valid-game-what-each-access-level-proves) asks what an
attacker of a valid game proves who sees more than synthetic rows, or makes the worst case worse.

    python -m reports.pate_gan_audit.run --data DIR

does the pieces of work that [results](results) lacks, one file each (by the seconds in the results
four hours for all, on 2 cores with other work beside it; [where the table comes
from](../README.md#public-tables)), and goes on where it was stopped or killed; the last part,
`pages`, writes this page and the figures from the results. Some implementations have fewer models
than the paper's 1000 of each world, as the tables say; `--models 1000` asks for as many.
"""

READING = """\
**Reading the tables.** ε bounds are one-sided at 95 %. *Clopper-Pearson* is the paper's estimator,
*proved* the one that decides dpaudit's verdicts: exact, or by fair coins. *FN, FP* are the attack's
errors among the scored models of each world. The paper's bounds follow from its errors to the last
digit (a perfect attack on 400 + 400 models: 4.681517). "Nothing proved" is no evidence of privacy.
"""


def write(run: Run) -> None:
    """Draws the figures, and writes the page if the results are the study's own."""
    found = {part: read(run.out, part) for part in PARTS}
    pictures.draw(found, run.out / FIGURES)
    if run.is_whole:
        write_text(run.home / "README.md", readme(found))


def readme(found: Mapping[str, Part]) -> str:
    """The page of the folder."""
    sections = [
        INTRODUCTION,
        "## What changes against the paper\n",
        bullets((*findings.changes(found), *access_pages.answers(found["access"]))),
        READING,
        "## Table 2: deviations named by `dpaudit trace`\n",
        matrix.table_2(found["tables"]),
        "## Table 3: hyperparameters as run\n",
        matrix.table_3(found["settings"]),
        "## Figure 2: what the teachers read\n",
        _figure("Records read by each teacher", 2),
        _partitions(found["training"]),
        "## Figure 3: the teachers' losses\n",
        _figure("Cross-entropy of the teachers", 3),
        _losses(found["training"]),
        "## Figure 4: the moments, each accountant on the same votes\n",
        _figure("Log moments by accountant", 4),
        _moments(found["training"]),
        "## Figure 5: the audits\n",
        _figure("Bounds by implementation and game", 5),
        "### Average case: GroundHog (naive features), Cervical Cancer, record 397\n",
        _audits(found["average"], AVERAGE, (Game.PUBLISHED, Game.VALID)),
        "### Worst case: queries over {0, 1}³, 4 × (0, 0, 0) against those and (1, 1, 1)\n",
        "**The published game is INVALID**: models of one world are asked for 4 rows, of the\n"
        "other for 5. The first rows below are generators that ignore their data; in this game\n"
        'they are "caught". "Equal rows" fixes that alone, "valid" the bounds as well.\n'
        "Every column is constant in world out: there the released code of original and turing\n"
        "gives back nothing but zeros, whereas ours takes the public bounds for an empty range:\n"
        "its bounds tell the two worlds apart less than theirs.\n",
        _audits(found["worst"], WORST, tuple(Game)),
        "## What remains in a valid game\n",
        _remains(found),
        "## Six in a valid game: what each access level proves\n",
        access_pages.section(found["access"], found["exact"]),
        "## Sequential mode: how soon a published violation is proved\n",
        _sequential(found["sequential"]),
        "## Figure 12: Bayesian estimates\n",
        picture(
            "Bayesian estimates by implementation and game", f"results/{FIGURES}/figure-12.svg"
        ),
        _bayesian(found),
        "## How the published audit ran each implementation\n",
        "Read in its released code; where a copy differs from the implementation, so do the\n"
        'settings "as published" here. 5 teachers, λ 0.001, at most 1000 iterations (worst case:\n'
        "2 teachers, 100 iterations).\n",
        table(
            ("implementation", "what the harness changed"),
            ((name, harness.why) for name, harness in HARNESS.items()),
        ),
    ]
    return "\n".join(sections)


def _figure(words: str, figure: int) -> str:
    return picture(words, f"results/{FIGURES}/figure-{figure}.svg")


def _partitions(training: Part) -> str:
    rows = []
    for name in SIX:
        record = training.get(f"partition-{name}")
        if record is not None:
            shared = record["shared"]
            rows.append(
                (
                    name,
                    ", ".join(map(str, record["distinct"])),
                    "–" if shared is None else f"{shared[0]} to {shared[1]}",
                    record["used"],
                    PARTITIONS[name],
                )
            )
    heads = ("implementation", "distinct records, by teacher", "shared by two", "read at all")
    return table((*heads, "published"), rows)


def _losses(training: Part) -> str:
    rows = [
        (
            name,
            record["iterations"],
            *(f"{record[key][at]:.3f}" for at in (0, -1) for key in ("own", "others")),
        )
        for name in SIX
        if (record := training.get(f"losses-{name}")) and record["own"]
    ]
    heads = ("implementation", "iterations", "first: own data", "first: others", "last: own data",
             "last: others")  # fmt: skip
    return table(heads, rows)


def _moments(training: Part) -> str:
    records = [record for name, record in training.items() if name.startswith("moments-")]
    rows = [
        (
            f"{record['asked']['parameters']['gamma']:g}",
            who,
            *(f"{values[at]:.4g}" for at in (0, 9, 99)),
            f"{record['epsilon'][who]:.4g}",
        )
        for record in records
        for who, values in record["moments"].items()
    ]
    return table(("λ", "accountant", "moment 1", "moment 10", "moment 100", "ε"), rows)


def _audits(part: Part, paper: Mapping[str, Row], games: Sequence[Game]) -> str:
    rows: list[Sequence[object]] = []
    for name in (*NULLS, *SIX, REFERENCE):
        if name in paper:
            row = paper[name]
            errors = f"{row.false_negatives}, {row.false_positives}"
            rows.append((f"**{name}**", "the paper", "2 × 1000", f"{row.auc:.3f}", errors,
                         f"{row.clopper_pearson:.2f}", "–", "violation", ""))  # fmt: skip
        for game in games:
            record = part.get(f"{name}-{game}")
            if record is not None:
                rows.append(_audit_row("" if name in paper else f"**{name}**", game, record))
    heads = (
        "", "game", "models", "AUC", "FN, FP", "Clopper-Pearson", "proved", "verdict", "carried by"
    )  # fmt: skip
    return table(heads, rows)


def _audit_row(name: str, game: Game, record: Record) -> Sequence[object]:
    counts = record["counts"]
    errors = "–" if counts is None else f"{counts['false_negatives']}, {counts['false_positives']}"
    verdict = record["verdict"] or "nothing proved"
    harness = HARNESS.get(record["asked"]["generator"])
    if "rows" in record["asked"] and len({*_rows(record)}) > 1:
        verdict = "**INVALID game**"
    elif game is not Game.VALID and harness is not None and harness.hands_in_bounds:
        verdict += " (bounds: the harness's)"
    carried = "; ".join(
        f"{leak['feature']}({leak['column']})" for leak in record.get("leaks", [])[:2]
    )
    return (
        name,
        game.value.replace("-", " "),
        f"2 × {record['asked']['models']}",
        number(record["auc"], 3),
        errors,
        number(record["clopper_pearson"]),
        number(findings.proved(record)),
        verdict,
        carried,
    )


def _rows(record: Record) -> Iterable[int]:
    """Rows asked in each world."""
    rows = record["asked"]["rows"]
    return rows.values() if isinstance(rows, dict) else (rows,)


def _remains(found: Mapping[str, Part]) -> str:
    lines = findings.remaining(found)
    rows = [
        (
            record["asked"]["case"],
            record["asked"]["generator"],
            record["asked"]["fix"] or "nothing",
            number(record["auc"], 3),
            number(findings.proved(record)),
            record["verdict"],
        )
        for record in found["remains"].values()
    ]
    heads = ("case", "implementation", "fixed besides the bounds", "AUC", "proved", "verdict")
    return bullets(lines) + ("\n" + table(heads, rows) if rows else "")


def _sequential(part: Part) -> str:
    rows = []
    for name in SIX:
        records = [r for r in part.values() if r["asked"]["generator"] == name]
        if records:
            scored = [r["scored_models"] for r in records]
            shown = ", ".join("not within the cap" if one is None else str(one) for one in scored)
            cap = records[0]["asked"]["cap"]
            rows.append((name, f"{AVERAGE[name].auc:.3f}", shown, f"2 × {cap}", findings.aim(name)))
    heads = ("implementation", "published AUC", "scored models until proof, by seed", "cap", "aim")
    return table(heads, rows)


def _bayesian(found: Mapping[str, Part]) -> str:
    rows = []
    for case, paper in (("worst", WORST), ("average", AVERAGE)):
        for name in SIX:
            values = pictures.estimates(found[case], name, paper[name], bayesian=True)
            rows.append((case, name, *(number(values.get(key)) for key in pictures.BAYESIAN)))
    words = (
        "The paper repeats its audits with credible intervals (Zanella-Béguelin et al. 2023).\n"
        "These are `dpaudit.bounds.joint_beta` of the errors of Figure 5, the paper's as well:\n"
        "its own bars come from a threshold chosen anew, whose errors are not released. An\n"
        "estimate, which exceeds the true ε far too often\n"
        "([calibration](../calibration/README.md)), never a "
        f"proof that ε > {EPSILON:g}.\n\n"
    )
    return words + table(("case", "implementation", *pictures.BAYESIAN), rows)
