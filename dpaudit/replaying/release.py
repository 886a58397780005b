"""Comparisons of what fits release, and the numbers in it that a score may look at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from dpaudit.replaying.laws import FloatArray
from dpaudit.replaying.transcript import FitRelease

ROWS: Final = "rows"
"""The place of the synthetic rows; the places of further samples end in this word, too."""
_ROWS: Final = re.compile(rf"(\d+ )?{ROWS}( of .*)?", re.DOTALL)
_MOST_DIGESTS: Final = 3
"""Contents of a place without numbers that a score may recognise."""


def are_rows(place: str) -> bool:
    """Whether a place is of synthetic rows, not of the fitted model."""
    return _ROWS.fullmatch(place) is not None


def differing_places(first: FitRelease, second: FitRelease) -> tuple[str, ...]:
    """Places whose content differs by a bit, or that only one of two releases has."""
    places = dict.fromkeys((*first.digests, *second.digests))
    return tuple(place for place in places if first.digests.get(place) != second.digests.get(place))


class Number(NamedTuple):
    """A released number.

    Attributes:
        place: The array that it stands in.
        at: Its index there; None for a number that stands alone.
    """

    place: str
    at: int | None

    def __str__(self) -> str:
        """The number, as the report names it."""
        return self.place if self.at is None else f"{self.place}[{self.at}]"


@dataclass(frozen=True)
class ReleasedNumbers:
    """The numbers that several releases have at the same places.

    Attributes:
        places: Their arrays and sizes, in order.
    """

    places: tuple[tuple[str, int], ...]

    @classmethod
    def shared_by(
        cls, releases: Sequence[FitRelease], *, without: Set[str] = frozenset()
    ) -> ReleasedNumbers:
        """The numbers whose arrays have the same size in all of these releases."""
        first = releases[0].numbers
        return cls(
            tuple(
                (place, int(values.size))
                for place, values in first.items()
                if place not in without
                and values.size
                and all(
                    release.numbers.get(place, _NONE).size == values.size for release in releases
                )
            )
        )

    def of(self, release: FitRelease) -> FloatArray | None:
        """The numbers of a release, flat; None if it lacks one."""
        parts = [release.numbers.get(place, _NONE) for place, _ in self.places]
        if any(part.size != size for part, (_, size) in zip(parts, self.places, strict=True)):
            return None
        return np.concatenate([_NONE, *parts])

    @property
    def names(self) -> list[Number]:
        """The numbers of `of`, in order."""
        return [
            Number(place, at if size > 1 else None)
            for place, size in self.places
            for at in range(size)
        ]


_NONE: Final = np.zeros(0)


@dataclass(frozen=True)
class ReleaseFeatures:
    """Features of a release that a score may look at, made from some releases.

    Shared numbers, sizes of arrays, which places are there, and whether places without numbers
    have one of their usual contents.

    Attributes:
        numbers: The shared numbers.
        arrays: Places whose size is a feature.
        contents: Places and digests that are recognised.
        present: Places that only some of the releases have.
    """

    numbers: ReleasedNumbers
    arrays: tuple[str, ...]
    contents: tuple[tuple[str, str], ...]
    present: tuple[str, ...]

    @classmethod
    def of(
        cls, releases: Sequence[FitRelease], *, without: Set[str] = frozenset()
    ) -> ReleaseFeatures:
        """The features that may differ, from releases of both worlds."""
        numbers = ReleasedNumbers.shared_by(releases, without=without)
        aligned = {place for place, _ in numbers.places}
        every = dict.fromkeys(place for release in releases for place in release.digests)
        contents: list[tuple[str, str]] = []
        present: list[str] = []
        for place in every:
            if place in without:
                continue
            held = Counter(release.digests.get(place) for release in releases)
            if None in held:
                present.append(place)
            if place not in aligned and len(held) > 1:
                common = [
                    digest for digest, _ in held.most_common(_MOST_DIGESTS) if digest is not None
                ]
                contents += [(place, digest) for digest in common]
        arrays = {place for release in releases for place in release.numbers} - aligned - without
        return cls(numbers, tuple(sorted(arrays)), tuple(contents), tuple(present))

    def read(self, release: FitRelease) -> FloatArray:
        """The features of a release; missing numbers are NaN."""
        numbers = self.numbers.of(release)
        if numbers is None:
            numbers = np.full(sum(size for _, size in self.numbers.places), np.nan)
        return np.concatenate(
            [
                numbers,
                [float(release.numbers.get(place, _NONE).size) for place in self.arrays],
                [float(release.digests.get(place) == digest) for place, digest in self.contents],
                [float(place in release.digests) for place in self.present],
            ]
        )

    @property
    def names(self) -> list[str]:
        """The features in words."""
        return [
            *(f"`{number}`" for number in self.numbers.names),
            *(f"the size of `{place}`" for place in self.arrays),
            *(f"the content of `{place}`" for place, _ in self.contents),
            *(f"whether `{place}` is there" for place in self.present),
        ]


def without_model(release: FitRelease) -> FitRelease:
    """Only the synthetic rows of a release."""
    kept = {place for place in release.digests if are_rows(place)}
    return FitRelease(
        numbers={place: values for place, values in release.numbers.items() if place in kept},
        digests={place: digest for place, digest in release.digests.items() if place in kept},
    )
