"""What a report says about the claim: the verdict in sentences, and the findings behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dpaudit.formatting import auc_text, percent, rounded, rounded_down, rounded_up
from dpaudit.report.about import about_the_run
from dpaudit.report.curves import has_scores, histogram, largest_tpr, operating_point
from dpaudit.report.structure import BOUND_NAMES, MOST_ROWS, Block, Level, Picture, Table, left_out
from dpaudit.report.words import claim_and_proof, failed_part, feature_in_words

_PROVES_NOTHING = "The audit is invalid: these numbers prove nothing; they help to find out why."


def subject(document: Mapping[str, Any]) -> str:
    """Name what was audited: the line above the verdict."""
    return f"Audit of {document['generator']['name']} on {document['data']['source']}"


def lead(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Say in plain sentences what was claimed, what was proved, and what could have been."""
    claim = document["claim"]
    claimed, proved = claim_and_proof(document)
    confidence = percent(document["confidence"])
    promise = (
        "The generator is claimed to satisfy differential privacy with "
        f"epsilon {claimed} and delta {rounded(claim['delta'])}: its output should hardly show "
        "whether any one record was in the table"
    )
    verdict = document["verdict"]
    if verdict == "violation":
        return (
            f"{promise}. This audit proved, at {confidence} confidence, that it shows as much as "
            f"epsilon {proved} or more: the claim does not hold.",
            _power(document),
        )
    if verdict == "consistent":
        return (
            f"{promise}. The most that this audit proved, at {confidence} confidence, is epsilon "
            f"{proved}, which the claim allows.",
            "No violation found. This is not evidence of privacy.",
            _power(document),
        )
    if verdict == "inconclusive":
        return (
            f"{promise}. This audit could not put that to a fair test: it neither contradicts the "
            "claim nor supports it.",
            _power(document),
        )
    return (f"{promise}. This audit says nothing about it: {failed_part(document)}.",)


def blocks(document: Mapping[str, Any]) -> tuple[Block, ...]:
    """Arrange everything below the verdict.

    Args:
        document: A result document.

    Returns:
        The parts of the report in reading order; parts without content are left out, except
        where their absence is news.
    """
    sections: tuple[Callable[[Mapping[str, Any]], Iterable[Block]], ...] = (
        _reasons,
        _claim_against_bound,
        _leaks,
        _one_run,
        _attacks,
        _scores,
    )
    findings = (block for section in sections for block in section(document))
    return (*findings, *about_the_run(document))


def _power(document: Mapping[str, Any]) -> str:
    if document["max_provable_epsilon"] is None:
        return "No trial was scored, so no leak could have been caught."
    limit = (
        f"no audit of this size proves more than {rounded_down(document['max_provable_epsilon'])}"
    )
    least = document["detectable_epsilon"]
    if least is None:
        return f"No leak, however large, would have been caught with 80 % power; {limit}."
    return (
        f"A leak of epsilon {rounded_up(least)} or more that the attack picks up would have been "
        f"caught with 80 % power; {limit}."
    )


def _reasons(document: Mapping[str, Any]) -> Iterable[Block]:
    if document["reasons"]:
        yield Block(title="Why", items=tuple(document["reasons"]))


def _claim_against_bound(document: Mapping[str, Any]) -> Iterable[Block]:
    title = "Claim against bound"
    if document["proved"] is None:
        yield Block(
            title=title,
            paragraphs=(
                "There is no bound: no trial of the audited generator was scored. Attacks, "
                "scores and leaking features are therefore missing below.",
            ),
        )
        return
    claimed, proved = claim_and_proof(document)
    confidence = percent(document["confidence"])
    methods = tuple(
        (f"Proved, {name}", rounded_down(value), meaning)
        for key, name, meaning in BOUND_NAMES
        if (value := document["bounds"][key]) is not None
    )
    rows = (
        ("Claimed", claimed, "what the generator promises"),
        ("Proved", proved, f"at least this, at {confidence} confidence; decides"),
        *methods,
        (
            "Caught with 80 % power",
            rounded_up(document["detectable_epsilon"]),
            "smallest leak that this audit exposes four times in five",
        ),
        (
            "Largest provable",
            rounded_down(document["max_provable_epsilon"]),
            "the bound of an attack that never errs",
        ),
    )
    invalid = document["verdict"] == "invalid"
    yield Block(
        title=title,
        paragraphs=(_PROVES_NOTHING,) if invalid else (),
        picture=Picture.CLAIM,
        table=Table(("Quantity", "Epsilon", "Meaning"), rows, frozenset({1})),
    )


def _one_run(document: Mapping[str, Any]) -> Iterable[Block]:
    found = document["one_run"]
    if found is None or found["correct"] is None:
        return
    estimate = found["gaussian_estimate"]
    rows = [
        ("Canaries", str(found["canaries"]), "records far from others, each by its own fair coin"),
        ("Included", str(found["included"]), "in the table that the generator was trained on"),
        ("Guessed in", str(found["guesses"]), "a number fixed beforehand; no guess on the rest"),
        ("Guessed right", str(found["correct"]), "by chance: half of the guesses"),
        ("AUC", auc_text(document["auc"]), "of the scores of all canaries; 0.5 is chance"),
    ]
    if estimate is not None:
        meaning = "assumes a Gaussian trade-off curve; an estimate, not a proof; never decides"
        rows.append(("Epsilon, estimated", rounded_down(estimate), meaning))
    yield Block(
        title="One training, many canaries",
        paragraphs=(
            f"The generator was trained once. The attack {document['attack']} looked for each "
            "canary in the synthetic table and guessed which were in the training table; what "
            "(epsilon, delta)-DP allows of right guesses gives the bound.",
        ),
        table=Table(("Quantity", "Number", "Meaning"), tuple(rows), frozenset({1})),
    )


def _leaks(document: Mapping[str, Any]) -> Iterable[Block]:
    leaks = document["leaks"]
    violation = document["verdict"] == "violation"
    if document["counts"] is None or not (leaks or violation):
        return
    title = "Where the leak is" if violation else "What the attack relied on"
    if not leaks:
        yield Block(title=title, paragraphs=("No single feature carries the attack.",))
        return
    words = feature_in_words(leaks[0])
    say = f"The leak is in {words}." if violation else f"Most of all on {words}; no leak is proved."
    yield Block(
        title=title,
        paragraphs=(say, *left_out(leaks, "features")),
        table=Table(
            ("Feature", "AUC lost without it"),
            tuple((feature_in_words(of), rounded(of["importance"])) for of in leaks[:MOST_ROWS]),
            frozenset({1}),
        ),
    )


def _attacks(document: Mapping[str, Any]) -> Iterable[Block]:
    if not document["attacks"]:
        return
    shown = [entry for entry in BOUND_NAMES if document["bounds"][entry[0]] is not None]
    rows = tuple(
        (
            attack["name"],
            auc_text(attack["auc"]),
            _rule(attack["threshold"]),
            f"{attack['counts']['false_negatives']} of {attack['counts']['n_in']}",
            f"{attack['counts']['false_positives']} of {attack['counts']['n_out']}",
            *(rounded_down(attack["bounds"][key]) for key, _, _ in shown),
        )
        for attack in document["attacks"]
    )
    header = (
        *("Attack", "AUC", "Guesses in", "In missed", "Out mistaken"),
        *(name.capitalize() for _, name, _ in shown),
    )
    yield Block(
        title="Attacks",
        paragraphs=(
            f"The deciding attack is {document['attack']}. Thresholds were fixed before these "
            "trials were scored; the last columns are lower bounds on epsilon. "
            f"{_multiplicity(document)}",
        ),
        table=Table(header, rows, frozenset(range(1, len(header)))),
    )


def _multiplicity(document: Mapping[str, Any]) -> str:
    rule, hypotheses = document["multiplicity"]["rule"], document["multiplicity"]["hypotheses"]
    if rule == "select":
        return "One attack was chosen on trials that were not scored, so nothing is corrected."
    if hypotheses == 1:
        return "There is one attack, so nothing is corrected."
    return f"They are corrected for {hypotheses} attacks (Bonferroni)."


def _rule(threshold: Mapping[str, Any]) -> str:
    sign = "≥" if threshold["direction"] == "higher" else "<"
    return f"{sign} {rounded(threshold['value'])}"


def _scores(document: Mapping[str, Any]) -> Iterable[Block]:
    if not has_scores(document):
        return
    scores, claim = document["scores"], document["claim"]
    one_run = document["one_run"] is not None
    trials = "Canaries" if one_run else "Trials"
    say = (
        "A high score says that a synthetic record lies near the canary. The better the attack, "
        "the less included and excluded canaries overlap."
        if one_run
        else "A high score says that a shadow model looks trained with the target, a low one "
        "without it. The better the attack, the less the two worlds overlap."
    )
    yield Block(title="Scores of the deciding attack", paragraphs=(say,))
    bins = histogram(scores)
    rows = tuple(
        (f"{rounded(float(low))} to {rounded(float(high))}", str(inside), str(outside))
        for low, high, inside, outside in zip(
            bins.edges[:-1], bins.edges[1:], bins.inside, bins.outside, strict=True
        )
        if inside or outside
    )
    yield Block(
        title="Included and excluded canaries" if one_run else "Distribution in the two worlds",
        level=Level.SUBSECTION,
        picture=Picture.SCORES,
        table=Table(("Score", f"{trials} in", f"{trials} out"), rows, frozenset({1, 2})),
    )
    if one_run:
        return  # canaries share a training: the claim's region is of independent trials
    point = operating_point(document["counts"])
    permitted = largest_tpr(claim["epsilon"], claim["delta"], point.fpr)
    yield Block(
        title="ROC curve",
        level=Level.SUBSECTION,
        picture=Picture.ROC,
        table=Table(
            ("At the chosen threshold", "Rate"),
            (
                ("False positives: out guessed in", rounded(point.fpr)),
                ("True positives: in guessed in", rounded(point.tpr)),
                ("Most true positives the claim permits there", rounded(permitted)),
                ("Area under the curve (0.5 is chance)", auc_text(document["auc"])),
            ),
            frozenset({1}),
        ),
    )
