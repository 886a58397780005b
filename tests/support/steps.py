"""Steps of transcripts, as replays record them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit.replaying.laws import NoiseLaw
from dpaudit.replaying.transcript import (
    AnswerSelection,
    ChoiceStep,
    NoisyStep,
    Pair,
    SelectionKind,
    Site,
    Transcript,
)


def site_of(line: int) -> Site:
    return Site("/lib/code.py", line, "f")


def noisy_step(
    inside: Any,
    outside: Any,
    law: NoiseLaw | None,
    *,
    other: NoiseLaw | None = None,
    answer: Any = None,
    first: int = 0,
    line: int = 1,
    draws: Sequence[Sequence[tuple[int, float]]] = (),
    names: Sequence[str] = ("gaussian",),
    toss: int | None = None,
    is_lost: bool = False,
) -> NoisyStep:
    """A step with these values before noise; its answers are those of world "in" by default."""
    before = Pair(*(np.atleast_1d(np.asarray(one, dtype=float)) for one in (inside, outside)))
    value = before.inside if answer is None else np.atleast_1d(np.asarray(answer, dtype=float))
    same = law is None or other is None
    return NoisyStep(
        site=site_of(line),
        first=first,
        before=before,
        laws=None if law is None else (law, law if other is None else other),
        differs=np.zeros(value.size, bool) if same else ~np.asarray(law.equals(other)),
        answer=value,
        draws=tuple(tuple(one) for one in draws),
        law_names=frozenset(names),
        seed=None,
        toss=toss,
        is_lost=is_lost,
        key=("answer", site_of(line), first),
    )


def choice_step(
    *tables: tuple[Any, Any], line: int = 1, place: int = 0, toss: int | None = None
) -> ChoiceStep:
    return ChoiceStep(
        site=site_of(line),
        tables=tuple(Pair(np.asarray(p, float), np.asarray(q, float)) for p, q in tables),
        places=np.full(len(tables), place),
        toss=toss,
        key=("choose", site_of(line), 1),
    )


def selection(
    kind: SelectionKind,
    numbers: Any,
    outcome: Any,
    *,
    line: int = 9,
    factor: Any = 1.0,
    offset: Any = 0.0,
    limits: Any = None,
    limit_numbers: Any = None,
    is_equal: bool = True,
) -> AnswerSelection:
    own = np.atleast_1d(np.asarray(numbers, dtype=np.int64))

    def spread(value: Any) -> Any:
        return np.broadcast_to(np.asarray(value, dtype=float), own.shape)

    others = None if limit_numbers is None else np.broadcast_to(limit_numbers, own.shape)
    compared = kind is SelectionKind.COMPARED
    return AnswerSelection(
        site=site_of(line),
        kind=kind,
        numbers=own,
        factor=spread(factor),
        offset=spread(offset),
        outcome=np.atleast_1d(np.asarray(outcome, dtype=np.int64)),
        limits=spread(0.0 if limits is None else limits) if compared else None,
        limit_numbers=None if others is None else np.asarray(others, dtype=np.int64),
        limit_factor=None if others is None else np.ones(own.shape),
        is_equal=is_equal,
    )


def transcript_of(*steps: Any, released: Any = (), **others: Any) -> Transcript:
    """A transcript of steps and selections in order."""
    return Transcript(
        noisy=[one for one in steps if isinstance(one, NoisyStep)],
        choices=[one for one in steps if isinstance(one, ChoiceStep)],
        selections=[one for one in steps if isinstance(one, AnswerSelection)],
        released=set(released),
        **others,
    )
