"""What a report says: the findings behind the verdict, then how they came about."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from dpaudit.bounds import Direction, Threshold
from dpaudit.formatting import (
    auc_text,
    clipped,
    duration,
    one_line,
    percent,
    rounded,
    rounded_down,
    rounded_up,
)
from dpaudit.game.store import LOG_FILE
from dpaudit.model.choices import Access
from dpaudit.model.claim import Neighbours, NoClaim
from dpaudit.model.tables import IN_MEMORY, TABLE_FILE
from dpaudit.plugins.protocols import World
from dpaudit.results.advice import next_step
from dpaudit.results.curves import (
    attack_bounds,
    has_scores,
    histogram,
    largest_tpr,
    operating_point,
    shown_bounds,
)
from dpaudit.results.leaks import (
    MANY,
    NO_FEATURE,
    TRIAL_OUTCOMES,
    WHOLE_OUTPUT,
    Carrier,
    carrier,
    feature,
)
from dpaudit.results.record import AuditRecord, ProbeAlarm
from dpaudit.results.sentences import (
    JUDGED_BEFORE,
    PROVES_NOTHING,
    as_clearly,
    claim_and_proof,
    claim_text,
    compared_bound,
    target,
    withheld,
)
from dpaudit.results.structure import MOST_ROWS, Block, Level, Picture, ReportTable, left_out
from dpaudit.results.verdict import Verdict

_LONGEST_ERROR = 300
_WORLDS = {
    Neighbours.ADD_REMOVE: "tables with a record from tables without it",
    Neighbours.REPLACE_ONE: "tables with a record from tables with another in its place",
}


def subject(result: AuditRecord) -> str:
    """Names what was audited: the line above the verdict."""
    when = f", {result.date}" if result.date else ""
    return f"Audit of {result.generator.name} on {result.data.source}{when}"


def blocks(result: AuditRecord) -> tuple[Block, ...]:
    """Arranges everything below the verdict.

    Args:
        result: The record of an audit.

    Returns:
        The parts of the report in reading order; parts without content are left out, except
        where their absence is news.
    """
    sections: tuple[Callable[[AuditRecord], Iterable[Block]], ...] = (
        _reasons,
        _next,
        threat_model,
        _claim_against_bound,
        _leaks,
        _game,
        _attacks,
        _scores,
    )
    findings = (block for section in sections for block in section(result))
    return (*findings, *about_the_run(result))


def _reasons(result: AuditRecord) -> Iterable[Block]:
    if result.reasons:
        yield Block(title="Why", items=tuple(result.reasons))


def _next(result: AuditRecord) -> Iterable[Block]:
    step = next_step(result)
    here = " (in the folder of this report)" if step.command.endswith(" .") else ""
    yield Block(
        title="What to do next",
        paragraphs=(
            f"{step.why.removesuffix('.')}{here}.",
            *([f"It costs {step.cost}."] if step.cost else []),
            *(f"Then {then}." for then in step.then),
        ),
        command=step.command or None,
    )


def _claim_against_bound(result: AuditRecord) -> Iterable[Block]:
    claims = not isinstance(result.claim, NoClaim)
    title = "Claim against bound" if claims else "Empirical epsilon"
    if result.proved is None:
        yield Block(
            title=title,
            paragraphs=(
                "There is no bound: no trial of the audited generator was scored. Attacks, "
                "scores and leaking features are therefore missing below.",
            ),
        )
        return
    claimed, proved = claim_and_proof(result.claim, result.proved)
    confidence = percent(result.confidence)
    most, least, gaussian_least = result.power or (None, None, None)
    quantity = result.claim.quantity
    gaussian = (
        ()
        if gaussian_least is None
        else (
            (
                "Caught with 80 % power, Gaussian",
                rounded_up(gaussian_least),
                "the same of a leak that shifts a normal score",
            ),
        )
    )
    methods = tuple(
        (
            f"Proved, {entry.label}" if entry.decides else entry.label,
            rounded_down(value),
            entry.meaning,
        )
        for _, entry, value in shown_bounds(result)
    )
    promised = (("Claimed", claimed, "what the generator promises"),)
    caught = (
        (
            "Caught with 80 % power",
            rounded_up(least),
            "smallest leak that this audit exposes four times in five, if it shows "
            f"{as_clearly(quantity)}",
        ),
    )
    rows = (
        *(promised if claims else ()),
        ("Proved", proved, f"at least this, at {confidence} confidence; decides"),
        *methods,
        *(caught if claims else ()),
        *gaussian,
        (
            "Largest provable",
            rounded_down(most),
            "the bound of an attack that never errs",
        ),
    )
    caution: tuple[str, ...] = ()
    if result.verdict is Verdict.INVALID:
        caution = (PROVES_NOTHING,)
    elif withheld(result):
        caution = (f"{JUDGED_BEFORE}.",)
    yield Block(
        title=title,
        paragraphs=(*caution, *compared_bound(result)),
        picture=Picture.CLAIM,
        table=ReportTable(("Quantity", _capital(quantity.noun), "Meaning"), rows, frozenset({1})),
    )


def _game(result: AuditRecord) -> Iterable[Block]:
    return result.game.blocks(result)


def _leaks(result: AuditRecord) -> Iterable[Block]:
    leaks = result.leaks
    violation = result.proves_leak
    if result.counts is None or not result.game.names_leaks or not (leaks or violation):
        return
    title = "Where the leak is" if violation else "What the attack relied on"
    if not leaks:
        yield Block(title=title, paragraphs=(f"{_capital(NO_FEATURE)}.",))
        return
    alone = any(leak.separation is not None for leak in leaks)
    yield Block(
        title=title,
        paragraphs=(_carried(result), *left_out(leaks, "features")),
        table=ReportTable(
            ("Feature", "AUC lost without it", *(("Alone: |AUC - 1/2|",) if alone else ())),
            tuple(
                (
                    feature(leak),
                    rounded(leak.importance),
                    *((rounded(leak.separation),) if alone else ()),
                )
                for leak in leaks[:MOST_ROWS]
            ),
            frozenset({1, 2} if alone else {1}),
        ),
    )


def _carried(result: AuditRecord) -> str:
    """What carries the deciding attack, in words."""
    violation = result.proves_leak
    not_proved = "" if violation else "; no leak is proved"
    first = feature(result.leaks[0])
    return {
        Carrier.WHOLE_OUTPUT: f"The leak is in {WHOLE_OUTPUT}."
        if violation
        else f"On {WHOLE_OUTPUT}{not_proved}.",
        Carrier.MANY: f"{_capital(MANY)}{not_proved}. They repeat each other, so that the attack "
        "loses little without any one of them; the most separating come first.",
        Carrier.FEATURES: f"The leak is in {first}."
        if violation
        else f"Most of all on {first}{not_proved}.",
        Carrier.NONE: f"{_capital(NO_FEATURE)}{not_proved}.",
    }[carrier(result.leaks, result.checks)]


def _attacks(result: AuditRecord) -> Iterable[Block]:
    if not result.attacks:
        return
    labels = attack_bounds(result)
    shown = tuple(labels)
    rows = tuple(
        (
            attack.name,
            auc_text(attack.auc),
            _rule(attack.threshold),
            f"{attack.counts.false_negatives} of {attack.counts.n_in}",
            f"{attack.counts.false_positives} of {attack.counts.n_out}",
            *(rounded_down(attack.bounds[key]) for key in shown),
        )
        for attack in result.attacks
    )
    header = (
        *("Attack", "AUC", "Guesses in", "In missed", "Out mistaken"),
        *(_capital(labels[key]) for key in shown),
    )
    yield Block(
        title="Attacks",
        paragraphs=(
            f"The deciding attack is {result.attack}. Thresholds were fixed before these "
            "trials were scored, and so was the rule that bounds each attack; the last columns are "
            f"lower bounds on {result.claim.quantity.noun}. {_multiplicity(result)}",
        ),
        table=ReportTable(header, rows, frozenset(range(1, len(header)))),
    )


def _multiplicity(result: AuditRecord) -> str:
    """How the bounds are corrected, and which attacks were chosen on other trials."""
    rule, hypotheses = result.multiplicity.rule, result.multiplicity.hypotheses
    turns = result.game.turns
    if hypotheses > 1:
        corrected = f"They are corrected for {hypotheses} attacks (Bonferroni)."
    elif turns:
        corrected = "One attack bets at a time, so nothing is corrected."
    elif rule == "select":
        corrected = "One attack was chosen on trials that were not scored, so nothing is corrected."
    else:
        corrected = "There is one attack, so nothing is corrected."
    if turns:
        each = ", ".join(f"{name} bet on {trials} trials" for name, trials in turns.items())
        corrected += (
            f" It was selected before each batch, on earlier trials: {each}. The sequential bound "
            f"is that of all these bets; the other numbers are of {result.attack} alone."
        )
    if any(attack.name == TRIAL_OUTCOMES for attack in result.attacks):
        corrected += (
            f" {_capital(TRIAL_OUTCOMES)} guesses from how a trial ended; on trials that were not "
            "scored it promised more than the attack whose place it has."
        )
    return corrected


def _rule(threshold: Threshold) -> str:
    sign = "≥" if threshold.direction is Direction.HIGHER else "<"
    return f"{sign} {rounded(threshold.value)}"


def _scores(result: AuditRecord) -> Iterable[Block]:
    if not has_scores(result):
        return
    scores, claim = result.scores, result.claim
    words = result.game.words
    trials = _capital(words.units)
    yield Block(title="Scores of the deciding attack", paragraphs=(words.scores,))
    bins = histogram(scores)
    rows = tuple(
        (f"{rounded(float(low))} to {rounded(float(high))}", str(inside), str(outside))
        for low, high, inside, outside in zip(
            bins.edges[:-1], bins.edges[1:], bins.inside, bins.outside, strict=True
        )
        if inside or outside
    )
    yield Block(
        title=words.panels,
        level=Level.SUBSECTION,
        picture=Picture.SCORES,
        table=ReportTable(("Score", f"{trials} in", f"{trials} out"), rows, frozenset({1, 2})),
    )
    if result.counts is None:
        return  # canaries share a training: the claim's region is of independent trials
    point = operating_point(result)
    permitted = (
        ()
        if isinstance(claim, NoClaim)
        else (
            (
                "Most true positives the claim permits there",
                rounded(largest_tpr(claim, point.fpr)),
            ),
        )
    )
    yield Block(
        title="ROC curve",
        level=Level.SUBSECTION,
        picture=Picture.ROC,
        table=ReportTable(
            ("At the chosen threshold", "Rate"),
            (
                ("False positives: out guessed in", rounded(point.fpr)),
                ("True positives: in guessed in", rounded(point.tpr)),
                *permitted,
                ("Area under the curve (0.5 is chance)", auc_text(result.auc)),
            ),
            frozenset({1}),
        ),
    )


def _capital(label: str) -> str:
    """A label with its first letter large, and the others as they are."""
    return label[0].upper() + label[1:]


def about_the_run(result: AuditRecord) -> tuple[Block, ...]:
    """Arranges what lets a reader trust the findings and repeat them."""
    sections = (
        _probes,
        _accounting,
        _data,
        _controls,
        _failures,
        _checks,
        _settings,
        _versions,
        _reproduce,
    )
    return tuple(block for section in sections for block in section(result))


def threat_model(result: AuditRecord) -> Iterable[Block]:
    """Who sees what: what the attacker sees, knows and has to find out."""
    words, level = result.game.words, result.access or Access.OUTPUT
    rows = (
        ("Sees", f"{level.in_words} ({level}); {result.rows} synthetic rows of each model"),
        (
            "Knows",
            f"all other records, {words.attacked}, the schema, and the generator with its "
            "parameters",
        ),
        ("Does not know", f"{words.unknown}, and the random numbers of its training"),
        *(() if result.target.tables is None else (("Both tables", result.target.tables),)),
        ("Attacks", target(result)),
        ("Distinguishes", _WORLDS[result.claim.neighbours]),
    )
    yield Block(
        title="Threat model: who sees what",
        paragraphs=(
            "Differential privacy promises protection against this attacker, who knows more than "
            "any real one. Whoever sees less may find less; the claim has to hold all the same.",
        ),
        table=ReportTable(("The attacker", "In this audit"), rows),
    )


def _probes(result: AuditRecord) -> Iterable[Block]:
    probes = result.probes
    if probes is None:
        return
    rows = [
        (alarm.id, "✕ ALARM", str(alarm.severity), _p_value(alarm), alarm.correct)
        for alarm in probes.alarms
    ]
    for names, outcome in (
        (probes.passed, "no alarm"),
        (probes.failed, "failed"),
        (probes.not_applicable, "not applicable"),
        (probes.left_out, "not run"),
    ):
        rows += [(name, outcome, "", "", "") for name in names]
    not_run = f"Not all were run: {probes.why_left_out}." if probes.left_out else ""
    yield Block(
        title="Probes before the audit",
        paragraphs=(
            "Cheap checks from outside change the table or a setting and look whether the output "
            f"follows; they trained {probes.fits} models of their own. Their alarms are no part of "
            "the verdict and spend none of its error probability; no alarm is no evidence of "
            "privacy. The command dpaudit probe, with the same seed, shows what they saw.",
            *([not_run] if not_run else []),
        ),
        table=ReportTable(
            ("Probe", "Outcome", "Severity", "p-value", "Correct is"), tuple(rows), frozenset({3})
        ),
    )


def _p_value(alarm: ProbeAlarm) -> str:
    return "no chance involved" if alarm.p_value is None else rounded_up(alarm.p_value)


def _accounting(result: AuditRecord) -> Iterable[Block]:
    claim = result.claim
    if isinstance(claim, NoClaim):
        return
    yield Block(
        title="The accountant's side",
        paragraphs=(
            "The audit attacks what the generator gives away and takes the claim as stated: it "
            "does not follow the accounting. Of a generator that records its training by PATE or "
            "DP-SGD, dpaudit trace computes the cost again.",
        ),
        table=ReportTable(
            ("Claim", "As stated"),
            (
                ("Promise", claim_text(claim)),
                ("Source", claim.source),
                ("Neighbours", claim.neighbours.value),
            ),
        ),
    )


def _data(result: AuditRecord) -> Iterable[Block]:
    data, inferred = result.data, result.schema.inferred
    warning = (
        "Warning: the schema was inferred from the table, so bounds and categories are its "
        "own. A leak through them is outside this audit; hand in a public schema instead."
    )
    yield Block(
        title="Summary of the data",
        paragraphs=(warning,) if inferred else (),
        table=ReportTable(
            ("Table", "Value"),
            (
                ("Source", data.source),
                ("Rows", str(data.rows)),
                ("Columns", str(data.columns)),
                ("Schema", "inferred from the table" if inferred else "given"),
                ("Salted SHA-256", data.sha256),
            ),
        ),
    )


def _controls(result: AuditRecord) -> Iterable[Block]:
    words = result.game.words
    if result.controls is None:
        said = "None was run: every model that was trained before them failed."
        yield Block(title="Controls", paragraphs=(said,))
        return
    rows = tuple(
        (
            name,
            _passed(control.passed),
            rounded_down(control.bound),
            rounded_down(control.max_provable_epsilon),
            auc_text(control.auc),
            control.detail,
        )
        for name, control in result.controls.named().items()
    )
    yield Block(
        title="Controls",
        paragraphs=(
            "The null control audits a generator that ignores its data: an attack that "
            f"{words.separates} has learnt it from the game, not from the generator.",
            f"The positive control audits a generator that {words.copies}: an audit that does "
            "not catch it would catch nothing.",
        ),
        table=ReportTable(
            ("Control", "Outcome", "Bound", "Provable", "AUC", "What was seen"),
            rows,
            frozenset({2, 3, 4}),
        ),
    )


def _failures(result: AuditRecord) -> Iterable[Block]:
    failures, reasons = result.failures, result.failure_reasons
    if not failures[World.IN] and not failures[World.OUT]:
        yield Block(title="Failed trials", paragraphs=("No trial failed.",))
        return
    trained = result.shadow_models
    first = clipped(one_line(reasons[0].error), _LONGEST_ERROR) if reasons else ""
    alone = result.game.failed(first)
    if alone is not None:
        yield Block(title="Failed trials", paragraphs=(alone,))
        return
    yield Block(
        title="Failed trials",
        paragraphs=(
            f"World in: {failures[World.IN]} of {trained[World.IN]} trials. "
            f"World out: {failures[World.OUT]} of {trained[World.OUT]}. "
            "A failed trial counts as an error of attacks on tables, so that their bounds hold; "
            f"how trials end is attacked as {TRIAL_OUTCOMES!r}. Of exceptions only the type is "
            f"given: what they say may quote records and is in {LOG_FILE} of the run folder.",
            *left_out(reasons, "reasons"),
        ),
        table=ReportTable(
            ("World", "Trials", "What went wrong"),
            tuple(
                (of.world.value, str(of.count), clipped(one_line(of.error), _LONGEST_ERROR))
                for of in reasons[:MOST_ROWS]
            ),
            frozenset({1}),
        )
        if reasons
        else None,
    )


def _checks(result: AuditRecord) -> Iterable[Block]:
    if result.checks:
        rows = tuple((of.name, _passed(of.passed), of.detail) for of in result.checks)
        yield Block(
            title="Checks of the run",
            table=ReportTable(("Check", "Outcome", "What was seen"), rows),
        )


def _settings(result: AuditRecord) -> Iterable[Block]:
    generator = result.generator
    parameters = ", ".join(f"{key}={_plain(of)}" for key, of in generator.parameters.items())
    unseeded = (
        "The generator cannot be seeded: its trials are independent, but another run gives "
        "other numbers."
    )
    rows = (
        ("Generator", generator.name),
        ("Parameters", parameters or "defaults"),
        result.game.models(result),
        ("Confidence", f"{percent(result.confidence)}, one-sided"),
        ("Synthetic rows per training", str(result.rows)),
        ("Seed", str(result.seed)),
        *((("Date", result.date),) if result.date else ()),
        ("Time", duration(result.seconds)),
    )
    yield Block(
        title="Settings",
        paragraphs=() if generator.seedable else (unseeded,),
        table=ReportTable(("Setting", "Value"), rows),
    )


def _versions(result: AuditRecord) -> Iterable[Block]:
    rows = tuple((name, version) for name, version in result.versions.items())
    yield Block(title="Versions", table=ReportTable(("Software", "Version"), rows))


def _reproduce(result: AuditRecord) -> Iterable[Block]:
    said: tuple[str, ...] = ()
    if result.data.source == IN_MEMORY:
        said = (f"The table was in memory: write it to {TABLE_FILE} first.",)
    yield Block(title="Reproduce", paragraphs=said, command=result.reproduce)


def _passed(passed: bool) -> str:
    return "✓ passed" if passed else "✕ FAILED"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
