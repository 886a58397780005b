"""One coin that decides the training table, guessed from whatever the pilot shows to follow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from dpaudit.model.claim import PrivacyClaim
from dpaudit.plugins.protocols import Generator
from dpaudit.probe.challenge import PILOTS, Coin, challenge, rule
from dpaudit.probe.result import NotApplicable, Observation
from dpaudit.probe.subject import Subject
from dpaudit.probe.trainer import Trainer


def single_coin(
    subject: Subject,
    trainer: Trainer,
    generator: Generator,
    data: pd.DataFrame,
    coin: Coin,
    features: Callable[[pd.DataFrame], Mapping[str, float]],
    *,
    basis: str,
    claim: PrivacyClaim | None = None,
    first: int = 0,
    pilots: int = PILOTS,
) -> Observation | NotApplicable | None:
    """Runs the test with one coin in each fit.

    Args:
        subject: What is probed.
        trainer: Trains.
        generator: The generator, built for the subject's schema.
        data: A table with every record that the coin may put in.
        coin: The coin.
        features: Numbers of a synthetic table, by name, that may follow the coin.
        basis: What follows it, in words.
        claim: What limits right guesses; the subject's by default.
        first: Number of the pilot's first fit.
        pilots: Fits of each side in the pilot.

    Returns:
        As `challenge`; None if no feature follows the coin in the pilot.
    """
    sides = []
    for side, dropped in enumerate(coin):
        fits = [trainer.fit_of(first + pilots * side + i, dropped) for i in range(pilots)]
        tables = trainer.tables(generator, data, fits, schema=subject.schema, rows=subject.rows)
        sides.append([features(table) for table in tables])
    heads, tails = (np.array([list(one.values()) for one in side]) for side in sides)
    found = rule(heads, tails)
    if found is None:
        return None
    name = list(sides[0][0])[found.feature]
    means = [float(side[:, found.feature].mean()) for side in (heads, tails)]
    return challenge(
        subject,
        trainer,
        generator,
        data,
        [coin],
        lambda table: [found.guess(np.array(list(features(table).values())))],
        schema=subject.schema,
        claim=claim,
        basis=f"{basis} ({name}: {means[0]:.4g} against {means[1]:.4g})",
    )
