"""Checks an evidence pack with numpy and scipy alone: files, error counts, bound and verdict.

Unpack the archive and run this file next to the others: `python verify.py`. It shares no code with
dpaudit. It recomputes the Clopper-Pearson and the fair-coin bound of claims in epsilon; for other
bounds and claims it says which command of dpaudit recomputes them. Exit code 1: something differs.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta, binom

CLOSE = 1e-6
"""Two numbers this close count as the same."""


def clopper_pearson(errors: dict[str, int], delta: float, confidence: float) -> float:
    """Upper limits on both error rates, and the epsilon that they exclude."""
    tail = (1 - confidence) / 2
    fn, fp, n_in, n_out = (
        errors[key] for key in ("false_negatives", "false_positives", "n_in", "n_out")
    )
    fnr = 1.0 if fn == n_in else float(beta.isf(tail, fn + 1, n_in - fn))
    fpr = 1.0 if fp == n_out else float(beta.isf(tail, fp + 1, n_out - fp))
    ratios = ((1 - delta - fnr) / fpr, (1 - delta - fpr) / fnr)
    return max([0.0, *(math.log(ratio) for ratio in ratios if ratio > 1)])


def set_aside(trainings: int, delta: float, alpha: float) -> tuple[int, float] | None:
    """Trainings set aside for delta, and the probability that delta reveals more of them."""
    best, least = (0, 0.0), math.inf
    for revealed in range(trainings if delta else 0):
        beyond = float(binom.sf(revealed, trainings, delta))
        if beyond < alpha:
            cost = -math.log(alpha - beyond) / (trainings - revealed)
            if cost >= least:
                break
            best, least = (revealed, beyond), cost
    return best if least < math.inf or not delta else None


def weight_reached(made: list[int], needed: int, p: float) -> float:
    """Probability that right guesses, each with probability p, have at least this weight."""
    mass = np.ones(1)
    for weight, count in enumerate(made, start=1):
        if count:
            spaced = np.zeros(weight * count + 1)
            spaced[::weight] = binom.pmf(np.arange(count + 1), count, p)
            mass = np.convolve(mass, spaced)
    return float(mass[max(0, needed) :].sum())


def fair_coin(guesses: dict[str, Any], delta: float, confidence: float) -> float:
    """The epsilon at which right guesses of this weight have probability 1 - confidence.

    A guess of a fair coin is right with probability at most e^epsilon / (1 + e^epsilon); delta
    reveals some coins, which count as right, the heaviest first.
    """
    by_training = guesses.get("by_training")
    trainings = len(by_training) if by_training else guesses["trials"]
    shared = guesses["trials"] // trainings
    alpha = 1 - confidence
    aside = set_aside(trainings, min(1.0, shared * delta), alpha)
    if aside is None:
        return 0.0
    revealed, beyond = aside
    if by_training:
        revealed = sum(sorted(by_training, reverse=True)[:revealed])
    made = list(guesses["made"])
    needed = sum(weight * of for weight, of in enumerate(guesses["right"], start=1))
    for place in reversed(range(len(made))):
        taken = min(revealed, made[place])
        made[place], revealed = made[place] - taken, revealed - taken
        needed -= taken * (place + 1)

    def excess(epsilon: float) -> float:
        return weight_reached(made, needed, 1 / (1 + math.exp(-epsilon))) + beyond - alpha

    return 0.0 if excess(0.0) >= 0 else float(brentq(excess, 0.0, 36.0, xtol=1e-10))


def errors_of(scores: dict[str, list[float]], threshold: dict[str, Any]) -> dict[str, int]:
    """Error counts of a threshold on the scores of both worlds."""
    higher = {
        world: sum(score >= threshold["value"] for score in own) for world, own in scores.items()
    }
    guessed = {
        world: count if threshold["direction"] == "higher" else len(scores[world]) - count
        for world, count in higher.items()
    }
    return {
        "false_negatives": len(scores["in"]) - guessed["in"],
        "false_positives": guessed["out"],
        "n_in": len(scores["in"]),
        "n_out": len(scores["out"]),
    }


def attack_confidence(run: dict[str, Any]) -> float:
    """Confidence of each bound of each attack."""
    left = (1 - run["confidence"]) * (1 - (run["multiplicity"].get("probes") or 0.0))
    left /= 2 if run["game"].get("sequential") else 1
    return float(1 - left / run["multiplicity"]["hypotheses"])


def files_differ(folder: Path) -> Iterator[str]:
    """What differs from the manifest."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name, digest in manifest["files"].items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            yield f"{name} does not have the digest of the manifest"


def compared(run: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Every number that is recomputed: its name, its value and the recorded one."""
    confidence, delta = attack_confidence(run), run["claim"].get("delta", 0.0)
    for attack in run["attacks"]:
        if attack["name"] == run["attack"] and len(run["scores"]["in"]) and run["counts"]:
            yield (
                "errors of " + attack["name"],
                errors_of(run["scores"], run["threshold"]),
                run["counts"],
            )
        in_epsilon = run.get("reach") is None
        recorded = attack["bounds"]["clopper_pearson"]
        if in_epsilon and recorded is not None:
            found = clopper_pearson(attack["counts"], delta, confidence)
            yield "Clopper-Pearson bound of " + attack["name"], found, recorded
        if in_epsilon and attack.get("guesses"):
            found = fair_coin(attack["guesses"], delta, confidence)
            yield "fair-coin bound of " + attack["name"], found, attack["bounds"]["fair_coin"]


def main() -> int:
    """Prints every comparison; exit code 1 if one differs."""
    folder = Path(__file__).resolve().parent
    run = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    wrong, recomputed = list(files_differ(folder)), []
    for name, found, recorded in compared(run):
        same = found == recorded if isinstance(found, dict) else abs(found - recorded) < CLOSE
        print(f"{'same' if same else 'DIFFERS'}  {name}: {found}, recorded {recorded}")
        recomputed += [recorded] if isinstance(recorded, float) else []
        wrong += [] if same else [name]
    proved, claimed = run["proved"], run["claim"].get("epsilon")
    if proved is not None and not any(abs(proved - bound) < CLOSE for bound in recomputed):
        print("not recomputed here: the bound that decides; use `dpaudit evidence verify`")
    elif proved is not None and claimed is not None:
        print(f"proved {proved:.4f} of a claimed epsilon {claimed}: recorded as {run['verdict']}")
        if run["verdict"] == "consistent" and proved > claimed:
            wrong.append("the verdict: the bound exceeds the claim")
        by_probe = (run.get("probes") or {}).get("alarms")
        if run["verdict"] == "violation" and proved <= claimed and not by_probe:
            wrong.append("the verdict: the bound does not exceed the claim")
    for one in wrong:
        print(f"DIFFERS  {one}")
    print("everything recomputed is as recorded" if not wrong else "the pack was changed")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
