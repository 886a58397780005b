"""The content of a report: the findings behind the verdict, then how they were made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial

from dpaudit.bounds import Direction, Threshold
from dpaudit.formatting import (
    auc_text,
    clipped,
    counted,
    duration,
    listed,
    one_line,
    percent,
    rounded,
    rounded_down,
    rounded_up,
    score_text,
)
from dpaudit.game.store import LOG_FILE
from dpaudit.model.choices import EXPOSING, FARTHEST, VULNERABLE, Access
from dpaudit.model.claim import Neighbours, NoClaim, PrivacyClaim
from dpaudit.plugins.protocols import World
from dpaudit.report.figures import draw
from dpaudit.report.page import Page, Step, audit_clauses, in_memory
from dpaudit.results import curves, sentences
from dpaudit.results.leaks import (
    LEAKS_LISTED,
    LEAKS_NAMED,
    MANY,
    NO_FEATURE,
    TRIAL_OUTCOMES,
    WHOLE_OUTPUT,
    Carrier,
    carrier,
    group_leaks,
    top_leaks,
)
from dpaudit.results.phrases import PUBLIC_SCHEMA
from dpaudit.results.record import AuditRecord, ProbeAlarm
from dpaudit.results.sentences import capitalised
from dpaudit.results.structure import MOST_ROWS, Block, Level, Picture, ReportTable, left_out
from dpaudit.results.summary import next_step
from dpaudit.results.verdict import Verdict

_LONGEST_ERROR = 300
_FEATURES_CHOSEN = (
    "The features were chosen on the scored models, on which the table measures them, so its "
    "numbers are optimistic. The bound does not use them."
)
_SALT = (
    "The salt of the digest stays in the run folder; without it the digest confirms no guess of a "
    "row."
)
_WORLDS = {
    Neighbours.ADD_REMOVE: "tables with a record from tables without it",
    Neighbours.REPLACE_ONE: "tables with a record from tables with another in its place",
}
_part = partial(Block, level=Level.SUBSECTION)


def audit_page(result: AuditRecord) -> Page:
    """Arranges the report of an audit.

    Args:
        result: The record of an audit.

    Returns:
        The page; sections without content are left out, except where their absence is news.
    """
    word, _, finding = sentences.headline(result).partition(sentences.HEADLINE_GAP)
    names_rows = result.target.row is not None or result.game.names_rows
    return Page(
        verdict=result.verdict,
        word=word,
        finding=finding,
        about=f"Audit of {result.generator.name} on {result.data.source}",
        date=result.date,
        lead=(*sentences.lead(result), *((sentences.CONFIDENTIAL,) if names_rows else ())),
        result=_result(result),
        next_step=_next(result),
        findings=_sections(
            result,
            *(_reasons, _leaks, result.game.blocks, _attacks, _scores, _threat_model),
            *(_controls, _checks, _probes, _failures),
        ),
        clauses=audit_clauses(guesses_secret=result.game.disclosed(result) is not None),
        reproduce=_reproduce(result),
        details=_sections(result, _settings, _data, _versions),
        origin=f"dpaudit {result.versions.get('dpaudit', '')} from result.json",
        draw=lambda picture: draw(picture, result),
    )


def _sections(
    result: AuditRecord, *sections: Callable[[AuditRecord], Iterable[Block]]
) -> tuple[Block, ...]:
    return tuple(block for section in sections for block in section(result))


def _reasons(result: AuditRecord) -> Iterable[Block]:
    """The reasons for the verdict; folded if the headline states them."""
    if result.reasons:
        unclear = result.verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID)
        yield _part(title="Reasons", items=result.reasons, folded=not unclear)


def _next(result: AuditRecord) -> Step:
    step = next_step(result)
    lines = [step.why]
    if step.cost:
        lines.append(f"It costs {step.cost}.")
    lines += [f"Then {then}." for then in step.then]
    if step.command.endswith(" ."):
        lines.append("Run it in the folder of this report:")
    return Step(tuple(lines), step.command or None)


def _result(result: AuditRecord) -> Block:
    if result.proved is None:
        return Block(
            title="Result",
            paragraphs=(
                "There is no bound: no shadow model was scored. Attacks, scores and leaking "
                "features are therefore missing below.",
            ),
        )
    noun = capitalised(result.claim.quantity.noun)
    return Block(
        title="Result",
        paragraphs=(sentences.PROVES_NOTHING,) if result.verdict is Verdict.INVALID else (),
        picture=Picture.CLAIM,
        caption=f"{_what_to_see(result)}{_triangle(result)}",
        table=ReportTable(("Quantity", noun, "Meaning"), tuple(_numbers(result)), frozenset({1})),
    )


def _triangle(result: AuditRecord) -> str:
    """What the triangle of the claim figure marks, if it has one."""
    if curves.claim_axis(result).detectable is None:
        return ""
    noun = result.claim.quantity.noun
    return f" The triangle is no finding: a true {noun} there is detected by 80 % of such audits."


def _what_to_see(result: AuditRecord) -> str:
    """The caption of the claim figure."""
    noun = result.claim.quantity.noun
    confidence = percent(result.confidence)
    if result.verdict is Verdict.VIOLATION and not result.proves_leak:
        return "The bar is what the attacks prove; a probe proves more, but not how much."
    if result.verdict is Verdict.VIOLATION:
        return (
            f"The bar ends beyond the claim; the true {noun} lies at or beyond its end "
            f"({confidence} confidence)."
        )
    if result.verdict is Verdict.CONSISTENT:
        return f"The bar does not reach beyond the claim; the true {noun} may lie beyond both."
    if result.verdict is Verdict.MEASURED:
        return f"The true {noun} lies at or beyond the end of the bar ({confidence} confidence)."
    return "This audit decides nothing; the bar is what it measured."


def _numbers(result: AuditRecord) -> Iterable[tuple[str, str, str]]:
    """The rows of the table of the claim: quantity, number, meaning; one row for each number."""
    claims = not isinstance(result.claim, NoClaim)
    claimed, proved = sentences.claim_and_proof(result.claim, result.proved)
    quantity = result.claim.quantity
    most, least, gaussian_least = result.power or (None, None, None)
    others = [bound for bound in curves.shown_bounds(result) if bound[0] is not result.decided_by]
    same = [entry.label for entry, value in others if _alike(value, result.proved)]
    at_limit = _alike(most, result.proved)
    if claims:
        yield ("Claim", claimed, f"{result.claim.source}")
    meaning = [_holds(result)]
    if same:
        meaning.append(f"the same by {' and '.join(same)}")
    if at_limit:
        meaning.append(f"all that this many {curves.sized_by(result)} can prove")
    yield (f"Empirical {quantity.noun}", proved, "; ".join(meaning))
    for entry, value in others:
        if not _alike(value, result.proved):
            yield (capitalised(entry.label), rounded_down(value), entry.meaning)
    if claims:
        yield (
            f"Minimum detectable {quantity.noun}",
            rounded_up(least),
            "80 % power to prove a violation, for a leak that shows "
            f"{sentences.as_clearly(quantity)}",
        )
    if claims and gaussian_least is not None:
        yield (
            f"Minimum detectable {quantity.noun}, Gaussian",
            rounded_up(gaussian_least),
            "80 % power to prove a violation, for a leak that shifts a normal score",
        )
    if not at_limit:
        yield (
            "Upper limit",
            rounded_down(most),
            f"bound of an attack without errors on this many {curves.sized_by(result)}",
        )


def _alike(first: float | None, other: float | None) -> bool:
    """Whether a table would show the same number twice."""
    return rounded_down(first) == rounded_down(other)


def _holds(result: AuditRecord) -> str:
    """The meaning of the deciding bound, and its rule."""
    entry = result.decided_by
    guessed = None if entry is None else sentences.guesses(result, entry)
    rule = "" if entry is None else f" ({entry.label}{f': {guessed}' if guessed else ''})"
    if sentences.is_withheld(result):
        return f"lower bound{rule}; proves nothing, because these shadow models were judged before"
    by_probe = result.verdict is Verdict.VIOLATION and not result.proves_leak
    decides = "" if by_probe else "; decides: quote this"
    return f"lower bound at {percent(result.confidence)} confidence{rule}{decides}"


def _leaks(result: AuditRecord) -> Iterable[Block]:
    leaks = result.leaks
    violation = result.proves_leak
    if result.counts is None or not result.game.names_leaks or not (leaks or violation):
        return
    title = "What leaks" if violation else "What the attack relied on"
    if not leaks:
        yield Block(title=title, paragraphs=(f"{capitalised(NO_FEATURE)}.",))
        return
    groups = group_leaks(leaks)[:LEAKS_LISTED]
    lines = [_carrier_sentence(result)]
    if sentences.leaks_elsewhere(result):
        chosen = listed([of.column for of in result.target.exposures or ()], LEAKS_NAMED)
        lines.append(
            f"The target was chosen because it stands out in {chosen}; {sentences.ELSEWHERE}."
        )
    if more := len(leaks) - sum(group.features for group in groups):
        many = counted(more, "more feature")
        lines.append(f"result.json has {many}; other columns may leak too.")
    rows = [(group.name, rounded(group.importance), _alone(group.separation)) for group in groups]
    header = ("Feature", "AUC lost if shuffled", "AUC alone")
    # Old results lack what each feature shows alone.
    columns = 3 if any(group.separation is not None for group in groups) else 2
    yield Block(
        title=title,
        paragraphs=(*lines, _FEATURES_CHOSEN),
        table=ReportTable(
            header[:columns],
            tuple(row[:columns] for row in rows),
            frozenset(range(1, columns)),
        ),
    )


def _alone(separation: float | None) -> str:
    """The AUC of a feature alone, in whichever direction it separates the worlds."""
    return auc_text(None if separation is None else 0.5 + separation)


def _carrier_sentence(result: AuditRecord) -> str:
    """The features that carry the deciding attack, in words."""
    violation = result.proves_leak
    not_proved = "" if violation else "; no leak is proved"
    names = "; ".join(top_leaks(result.leaks))
    carriers = {
        Carrier.WHOLE_OUTPUT: f"{'The leak is in' if violation else 'On'} {WHOLE_OUTPUT}",
        Carrier.MANY: capitalised(MANY),
        Carrier.FEATURES: f"Leaking features: {names}"
        if violation
        else f"The attack relies most on: {names}",
        Carrier.NONE: capitalised(NO_FEATURE),
    }
    by = carrier(result.leaks, result.checks)
    shuffled = (
        " Shuffling the values of any one of them lowers the AUC little; those with the largest "
        "AUC alone come first."
    )
    return f"{carriers[by]}{not_proved}.{shuffled if by is Carrier.MANY else ''}"


def _attacks(result: AuditRecord) -> Iterable[Block]:
    if not result.attacks:
        return
    labels = curves.attack_bounds(result)
    rows = tuple(
        (
            attack.name,
            auc_text(attack.auc),
            _rule(attack.threshold),
            f"{attack.counts.false_negatives}/{attack.counts.n_in}",
            f"{attack.counts.false_positives}/{attack.counts.n_out}",
            *(rounded_down(attack.bounds[key]) for key in labels),
        )
        for attack in result.attacks
    )
    header = (
        *("Attack", "AUC", "Threshold", "FNR", "FPR"),
        *map(capitalised, labels.values()),
    )
    parts = result.game.parts(result)
    missing = any(attack.bounds[key] is None for attack in result.attacks for key in labels)
    others = " (none: the attack is scored by another rule)" if missing else ""
    yield Block(
        title="Attacks",
        paragraphs=(
            *(() if parts is None else (parts,)),
            f"The deciding attack is {result.attack}. {_multiplicity(result)} Threshold and rule "
            f"of each attack were fixed on other {result.game.words.units} than the scored ones; "
            f"the last columns are lower bounds on {result.claim.quantity.noun}{others}. dpaudit "
            "list attacks describes each attack.",
            *sentences.compared_bound(result),
        ),
        table=ReportTable(header, rows, frozenset(range(1, len(header)))),
    )


def _multiplicity(result: AuditRecord) -> str:
    """How the bounds are corrected, and which attacks were chosen on other trials."""
    rule, hypotheses = result.multiplicity.rule, result.multiplicity.hypotheses
    turns = result.game.turns
    if hypotheses > 1:
        corrected = (
            f"The bounds are corrected for {hypotheses} attacks (Bonferroni). The "
            "deciding attack has the largest one on the scored models, so its AUC and error rates "
            "are optimistic."
        )
    elif turns:
        corrected = (
            "One attack, chosen before each batch, bets on it. All bets make one test, which needs "
            "no correction for multiple testing."
        )
    elif rule == "select":
        names = result.multiplicity.attacks
        among = f" among {', '.join(names)} and their combination" if names else ""
        corrected = (
            f"It was chosen{among} on shadow models that are not scored. The scored ones test this "
            "choice alone: one test, which needs no correction for multiple testing."
        )
    else:
        corrected = "One attack makes one test, which needs no correction for multiple testing."
    if hypotheses > 1 and result.multiplicity.attacks:
        among = ", ".join(result.multiplicity.attacks)
        corrected += (
            f" One of them is the guess of a secret; the other was chosen among {among} and their "
            "combination on shadow models that are not scored."
        )
    if turns:
        each = ", ".join(f"{name} on {trials} models" for name, trials in turns.items())
        corrected += (
            f" It was selected before each batch on earlier shadow models: {each}. The sequential "
            f"bound combines all of these; the other numbers are of {result.attack} alone."
        )
    if any(attack.name == TRIAL_OUTCOMES for attack in result.attacks):
        outdone = "every attack on tables" if rule == "select" else "the attack that it replaces"
        corrected += (
            f" {capitalised(TRIAL_OUTCOMES)} guesses from how a training ended; on other shadow "
            f"models it did better than {outdone}."
        )
    for attack in result.attacks:
        if attack.shares:
            each = ", ".join(
                f"{percent(round(share, 2))} {name}" for name, share in attack.shares.items()
            )
            corrected += (
                f" The score {attack.name!r} is a weighted sum of the features that separate the "
                f"worlds best, of all attacks: {each}."
            )
    return corrected


def _rule(threshold: Threshold) -> str:
    sign = "≥" if threshold.direction is Direction.HIGHER else "<"
    return f"{sign} {score_text(threshold.value)}"


def _scores(result: AuditRecord) -> Iterable[Block]:
    if not curves.has_scores(result):
        return
    scores, claim = result.scores, result.claim
    words = result.game.words
    yield Block(title="Scores", paragraphs=(words.scores,))
    bins = curves.histogram(scores)
    rows = tuple(
        (f"{rounded(float(low))} to {rounded(float(high))}", str(inside), str(outside))
        for low, high, inside, outside in zip(
            bins.edges[:-1], bins.edges[1:], bins.inside, bins.outside, strict=True
        )
        if inside or outside
    )
    yield _part(
        title=words.panels,
        picture=Picture.SCORES,
        caption=f"Scores of the attack {result.attack}: the less the two overlap, the more leaks.",
        table=ReportTable(
            ("Score", capitalised(words.inside), capitalised(words.outside)),
            rows,
            frozenset({1, 2}),
        ),
    )
    if result.counts is None:
        return  # canaries share a training, and the claim's region is for independent trials
    point = curves.operating_point(result)
    rates = [
        ("False positive rate (FPR)", rounded(point.fpr)),
        ("True positive rate (TPR = 1 - FNR)", rounded(point.tpr)),
    ]
    caption = "The farther the curve is from the diagonal, the more leaks."
    if not isinstance(claim, NoClaim):
        caption = "Limits that leave the permitted region point to a violation; the bound decides."
        of_delta = isinstance(claim, PrivacyClaim)  # TPR is at most exp(epsilon) FPR + delta
        where = "FPR 0: its delta" if point.fpr == 0.0 and of_delta else "this FPR"
        permitted = rounded(curves.largest_tpr(claim, point.fpr))
        rates.append((f"Largest TPR that the claim permits at {where}", permitted))
    rates.append(("AUC (0.5 is chance)", auc_text(result.auc)))
    yield _part(
        title="ROC curve",
        picture=Picture.ROC,
        caption=caption,
        table=ReportTable(("At the threshold", "Rate"), tuple(rates), frozenset({1})),
    )


def _threat_model(result: AuditRecord) -> Iterable[Block]:
    """The threat model: what the attacker sees, knows and has to find out."""
    words, level = result.game.words, result.access or Access.OUTPUT
    differ = _WORLDS[result.claim.neighbours]
    if result.claim.unit is not None:
        differ = differ.replace("a record", f"all rows of one {result.claim.unit}")
    public = "the schema, and the generator with its parameters"
    rows = (
        ("Sees", f"{level.in_words} ({level}); {result.rows} synthetic rows of each model"),
        ("Knows", f"all other records, {words.attacked}, {public}"),
        ("Does not know", f"{words.unknown}, and the random numbers of its training"),
        ("Both tables", result.target.tables),
        ("Attacks", sentences.target(result)),
        ("Warning", sentences.hidden_target(result)),
        ("Distinguishes", differ),
        ("Unit", sentences.one_row_each(result)),
    )
    yield Block(
        title="Threat model",
        paragraphs=(
            "Differential privacy promises protection against this attacker, who knows more than "
            "a real one would. An attacker who sees less may find less, which was not measured; "
            "the claim must hold all the same.",
        ),
        table=ReportTable(("The attacker", "In this audit"), _known(rows)),
    )


def _known(rows: Iterable[tuple[str, str | None]]) -> tuple[tuple[str, str], ...]:
    """The rows of a table that have a value."""
    return tuple((name, value) for name, value in rows if value)


def _probes(result: AuditRecord) -> Iterable[Block]:
    probes = result.probes
    if probes is None:
        return
    if not probes.fits and probes.not_probed:
        yield _part(
            title="Probes before the audit",
            folded=True,
            paragraphs=(f"Not probed: {probes.not_probed}.",),
        )
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
    lines = [
        "Cheap black-box checks change the table or a setting and test whether the output "
        f"follows; they trained {probes.fits} separate models. An alarm of severity violation "
        f"contradicts the claim: probes have {percent(result.multiplicity.probes or 0.0)} of "
        "the error probability, the bounds have the rest. No alarm is no evidence of privacy."
    ]
    if probes.left_out:
        lines.append(f"Not all were run: {probes.why_left_out}.")
    if probes.reproduce:
        lines.append(f"To see the evidence: {probes.reproduce}")
    yield _part(
        title="Probes before the audit",
        folded=not probes.alarms,
        paragraphs=tuple(lines),
        table=ReportTable(
            ("Probe", "Outcome", "Severity", "p-value", "Correct is"), tuple(rows), frozenset({3})
        ),
    )


def _p_value(alarm: ProbeAlarm) -> str:
    return "no chance involved" if alarm.p_value is None else rounded_up(alarm.p_value)


def _data(result: AuditRecord) -> Iterable[Block]:
    data, inferred = result.data, result.schema.inferred
    warning = (
        "Warning: the schema was inferred from the table, so bounds and categories are its "
        f"own. This audit cannot detect a leak through them: {PUBLIC_SCHEMA}."
    )
    rows = (
        ("Source", data.source),
        ("Rows", str(data.rows)),
        ("Columns", str(data.columns)),
        ("Units", None if data.units is None else str(data.units)),
        *((f"Rows of {name}", str(rows)) for name, rows in (data.tables or {}).items()),
        ("Schema", "inferred from the table" if inferred else "given"),
        ("Salted SHA-256", data.sha256),
    )
    yield _part(
        title="Data",
        folded=not inferred,
        paragraphs=(warning, _SALT) if inferred else (_SALT,),
        table=ReportTable(("Table", "Value"), _known(rows)),
    )


def _controls(result: AuditRecord) -> Iterable[Block]:
    words = result.game.words
    if result.controls is None:
        reason = "No control was run: every model trained before them failed."
        yield Block(title="Controls and checks", paragraphs=(reason,))
        return
    rows = tuple(
        (
            name,
            _passed_word(control.passed),
            rounded_down(control.bound),
            rounded_down(control.max_provable_epsilon),
            auc_text(control.auc),
            control.detail,
        )
        for name, control in result.controls.named().items()
    )
    yield Block(
        title="Controls and checks",
        paragraphs=(
            "The null control audits a generator that ignores its data, where nothing may be "
            f"found. The positive control audits one that {words.copies}, which must be detected.",
            "Controls do not test the claim. They train few models, so their bounds are compared "
            "with their own upper limits, not with the claim.",
        ),
        table=ReportTable(
            ("Control", "Outcome", "Bound", "Limit", "AUC", "Observed"), rows, frozenset({2, 3, 4})
        ),
    )


def _failures(result: AuditRecord) -> Iterable[Block]:
    failures, reasons, title = result.failures, result.failure_reasons, "Failed trainings"
    if not failures[World.IN] and not failures[World.OUT]:
        yield _part(title=title, paragraphs=("No training failed.",), folded=True)
        return
    trained = result.shadow_models
    rows = tuple(
        (of.world.value, str(of.count), clipped(one_line(of.error), _LONGEST_ERROR))
        for of in reasons[:MOST_ROWS]
    )
    alone = result.game.failed(rows[0][2] if rows else "")
    if alone is not None:
        yield _part(title=title, paragraphs=(alone,))
        return
    yield _part(
        title=title,
        paragraphs=(
            f"In: {failures[World.IN]} of {trained[World.IN]} shadow models. "
            f"Out: {failures[World.OUT]} of {trained[World.OUT]}. "
            "A failed training counts as an error of attacks on tables, so that their bounds hold; "
            f"the attack {TRIAL_OUTCOMES!r} guesses from failures. Exceptions are given by their "
            f"type alone: their text may quote records and is in {LOG_FILE} of the run folder.",
            *left_out(reasons, "reasons"),
        ),
        table=ReportTable(("World", "Models", "Failure"), rows, frozenset({1})) if rows else None,
    )


def _checks(result: AuditRecord) -> Iterable[Block]:
    if result.checks:
        rows = tuple((of.name, _passed_word(of.passed), of.detail) for of in result.checks)
        yield _part(
            title="Checks of the run",
            folded=all(of.passed for of in result.checks),
            table=ReportTable(("Check", "Outcome", "Observed"), rows),
        )


def _settings(result: AuditRecord) -> Iterable[Block]:
    generator = result.generator
    parameters = ", ".join(f"{key}={_plain(of)}" for key, of in generator.parameters.items())
    stated = not isinstance(result.claim, NoClaim)
    lines = []
    if not generator.seedable:
        lines.append(
            "The generator cannot be seeded: its models are independent, but another run gives "
            "other numbers."
        )
    if stated:
        lines.append(
            "The audit takes the claim as stated and does not check the accounting behind it: "
            "dpaudit replay and, for PATE and DP-SGD, dpaudit trace do."
        )
    rows = (
        ("Generator", generator.name),
        ("Parameters", parameters or "defaults"),
        ("Digest of its source", generator.source),
        ("Claim", sentences.claim_text(result.claim) if stated else None),
        ("Source of the claim", result.claim.source if stated else None),
        ("Neighbours", result.claim.neighbours.value),
        result.game.models(result),
        ("Confidence", f"{percent(result.confidence)}, one-sided"),
        ("Synthetic rows per training", str(result.rows)),
        ("Seed", str(result.seed)),
        ("Date", result.date),
        ("Time", duration(result.seconds)),
    )
    yield _part(
        title="Settings",
        folded=generator.seedable,
        paragraphs=tuple(lines),
        table=ReportTable(("Setting", "Value"), _known(rows)),
    )


def _versions(result: AuditRecord) -> Iterable[Block]:
    table = ReportTable(("Software", "Version"), tuple(result.versions.items()))
    yield _part(title="Versions", folded=True, table=table)


def _reproduce(result: AuditRecord) -> Step:
    lines: list[str] = []
    if result.generator.seedable and Access.TIMING in (result.access or Access.OUTPUT).parts:
        lines.append(
            "The same command trains the same models again and measures other seconds and memory."
        )
    elif result.generator.seedable:
        lines.append(
            "The same command trains the same shadow models (its seed fixes them) and gives the "
            "same numbers. It confirms this audit; independent evidence needs another --seed."
        )
    choice, row = result.target.choice, result.target.row
    if choice in (EXPOSING, FARTHEST, VULNERABLE) and row is not None:
        lines.append(f"--target {choice} chose {sentences.target(result)}.")
    elif row is not None and choice != f"row:{row}":
        what = "row" if result.target.rows_of_unit is None else "the unit of row"
        lines.append(f"The target {choice!r} is {what} {row} of this table.")
    return Step((*lines, *in_memory(result.data.source)), result.reproduce)


def _passed_word(passed: bool) -> str:
    return "✓ passed" if passed else "✕ FAILED"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
