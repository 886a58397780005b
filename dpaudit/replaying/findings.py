"""The options of a replay, and what it has found so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from dpaudit.errors import SettingsError
from dpaudit.model.choices import check_sampler
from dpaudit.model.setting import AT_LEAST_1, check_number
from dpaudit.plugins.protocols import World
from dpaudit.replaying.coins import CoinGame
from dpaudit.replaying.fits import Fits
from dpaudit.replaying.moved_features import MovedFeature
from dpaudit.replaying.reading import Proof
from dpaudit.replaying.record import InternalLine
from dpaudit.replaying.release import are_rows, differing_places
from dpaudit.replaying.spending import Spent
from dpaudit.replaying.transcript import Parting, PartKind, Site, Transcript, Unfollowed

_LINE: Final = re.compile(r"^(?P<place>[^:]+:\d+)(?::\s*(?P<why>.*))?$")


class ReplayAccess(StrEnum):
    """What the attacker of a replay sees."""

    MODEL = "model"
    ROWS = "rows"

    @classmethod
    def of(cls, name: str) -> ReplayAccess:
        """The access of a name.

        Raises:
            SettingsError: If there is none.
        """
        if name not in list(cls):
            raise SettingsError(f"`access` is {name!r}: give 'model' or 'rows'")
        return cls(name)


class ProofKind(StrEnum):
    """How a claim is proved."""

    COMPOSITION = "composition"

    @classmethod
    def of(cls, name: str | None) -> ProofKind | None:
        """The proof of a name; None for none.

        Raises:
            SettingsError: If it is another one.
        """
        if name is not None and name not in list(cls):
            raise SettingsError(f"`proof` is {name!r}: give 'composition' or leave it out")
        return None if name is None else cls(name)


def internal_line(text: str) -> InternalLine:
    """The line of "FILE:LINE" or "FILE:LINE: why".

    Raises:
        SettingsError: If it is neither.
    """
    match = _LINE.match(text)
    if match is None:
        raise SettingsError(f"`internal` is {text!r}: give FILE:LINE, or FILE:LINE: why")
    return InternalLine(match["place"], match["why"] or "")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a replay was asked for; see `run.replay`."""

    fits: int | None = None
    public_coins: bool = False
    proof: ProofKind | None = None
    internal: tuple[InternalLine, ...] = ()
    access: ReplayAccess = ReplayAccess.MODEL
    coins: bool = True
    hand_over: bool = False
    samplers: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """The options that a user has given, by name.

        Raises:
            SettingsError: If one is unusable.
        """
        options = dict(given)
        if options.get("fits") is not None:
            check_number("fits", options["fits"], AT_LEAST_1, whole=True)
        for sampler in options.get("samplers", ()):
            check_sampler(sampler)
        for name, parse in _PARSED.items():
            if name in options:
                options[name] = parse(options[name])
        return cls(**options)

    def with_proof_of(self, generator: object) -> Options:
        """With the proof that a generator states, if none was given."""
        stated = getattr(generator, "proof", None)
        return self if self.proof or stated is None else replace(self, proof=ProofKind.of(stated))

    @property
    def internal_lines(self) -> frozenset[tuple[str, int]]:
        """The file names and numbers of internal lines."""
        places = (line.place.rpartition(":") for line in self.internal)
        return frozenset((file, int(line)) for file, _, line in places)


_PARSED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "proof": ProofKind.of,
    "internal": lambda lines: tuple(map(internal_line, lines)),
    "access": ReplayAccess.of,
    "samplers": tuple,
}
"""How to read the options that a user gives as text, or as lists."""


@dataclass
class ReplayFindings:
    """What the fits have shown so far.

    Attributes:
        public_coins: Whether coins count as public.
        control: Why the code is not repeatable; None if it is.
        without: Places of the release that differ between fits of the same table.
        noise_lines: Lines that drew noise in the control, which is the first fit.
        pilots: Replays with noise as drawn.
        edges: Replays at the edges.
        control_parting: Where two fits of the same table part.
        stored: Places of the fitted model that differ under equal answers.
        generators: Places in it of generators, of their states, and of seeds of noise.
        left_out: Places that could not be compared.
        unamplified: Lines at which the record moves an answer whether its coin puts it into the
            sub-sample or not.
        deltas: The delta that each line spends on keys that only one world has.
        spent: What the steps spend.
        proof: What reading proved.
        game: The coin game.
        shared_noise: Pairs of lines with the same noise.
        are_dependent: Whether fits in one process depend on one another.
        fixed_seeds: Lines whose noise has the same seed in every fit.
        few_seeds: Lines whose noise has the same seed in some fits that got different ones.
        foreign_seeds: Lines whose noise has another seed when the fit has the same one.
        features: Features that the record moves.
    """

    public_coins: bool = False
    control: str | None = None
    without: frozenset[str] = frozenset()
    noise_lines: frozenset[Site] = frozenset()
    pilots: list[Transcript] = field(default_factory=list)
    edges: list[Transcript] = field(default_factory=list)
    control_parting: Parting | None = None
    stored: dict[str, None] = field(default_factory=dict)
    generators: dict[str, None] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)
    unamplified: frozenset[Site] = frozenset()
    deltas: Mapping[Site, float] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    proof: Proof | None = None
    game: CoinGame | None = None
    shared_noise: dict[tuple[Site, Site], None] = field(default_factory=dict)
    are_dependent: bool = False
    fixed_seeds: tuple[Site, ...] = ()
    few_seeds: tuple[Site, ...] = ()
    foreign_seeds: tuple[Site, ...] = ()
    features: tuple[MovedFeature, ...] | None = None

    def add(self, fits: Fits, transcript: Transcript, *, is_edge: bool = False) -> None:
        """Adds a replay: where the worlds part, and where their releases differ."""
        (self.edges if is_edge else self.pilots).append(transcript)
        first, second = (fits.release_of(transcript, world) for world in World)
        parting = transcript.parting
        if first is not None and second is not None:
            places = [
                place for place in differing_places(first, second) if place not in self.without
            ]
            rows = [place for place in places if are_rows(place)]
            if parting is None and rows:
                values = (f"{rows[0]} differ", "")
                parting = Parting(kind=PartKind.ROWS, sites=(None, None), values=values)
            if parting is None:
                self.stored |= dict.fromkeys(places)
            self.generators |= dict.fromkeys(first.generators)
            self.left_out |= dict.fromkeys((*first.left_out, *second.left_out))
        transcript.parting = parting

    def forget_pilots(self) -> None:
        """Leaves out the replays so far: they were aligned, or their coins read, the wrong way."""
        for kept in (self.pilots, self.stored, self.generators, self.left_out):
            kept.clear()

    @property
    def transcripts(self) -> Sequence[Transcript]:
        """All replays of both worlds."""
        return [*self.pilots, *self.edges]

    @property
    def partings(self) -> list[Parting]:
        """Where the worlds part, of each replay in which they do."""
        every = (transcript.parting for transcript in self.transcripts)
        return [parting for parting in every if parting is not None]

    @property
    def parting(self) -> Parting | None:
        """Where the worlds part first."""
        return next(iter(self.partings), self.control_parting)

    @property
    def goes_around(self) -> bool:
        """Whether data goes around the noise, into the fitted model or into what is done next."""
        return bool(self.stored) or self.parting is not None

    @property
    def lost_draws(self) -> list[Unfollowed]:
        """What was not followed, in any replay: it may protect the record at an unknown cost."""
        lost = [lost for pilot in self.pilots for lost in pilot.unfollowed]
        if self.goes_around or not self.moves:
            lost += [bare for pilot in self.pilots for bare in pilot.bare]
        return [draw for draw in dict.fromkeys(lost) if not (draw.if_secret and self.public_coins)]

    @property
    def not_charged(self) -> str | None:
        """What is not in the ledger, so that its sum is no cost; None if nothing is missing."""
        for draw in self.lost_draws:
            return f"{draw.site}: {draw.why}"
        if self.goes_around and not self.spent.value:
            return "data goes around the noise that was heard"
        return None

    @property
    def is_shown(self) -> bool:
        """Whether a bound above the claim was proved from the release."""
        return self.proof is not None or (self.game is not None and self.game.guesses.decided)

    @property
    def has_late_choices(self) -> bool:
        """Whether rows are drawn with probabilities that differ between the worlds."""
        return any(choice.is_late for pilot in self.pilots for choice in pilot.choices)

    @property
    def ignored(self) -> frozenset[str]:
        """Places that prove nothing: they differ between fits of the same table, or no row follows.

        State that the model stores without noise, such as the number of records, is a finding of
        its own. It counts as a leak where the rows follow it.
        """
        if self.parting is not None or self.has_late_choices:
            return self.without
        return self.without | self.stored.keys()

    @property
    def moves(self) -> bool:
        """Whether the record moved anything."""
        return any(pilot.choices or pilot.moving or pilot.lone for pilot in self.pilots)

    def take_seeds(self, seeds: Mapping[Site, Mapping[str, set[int]]]) -> None:
        """Finds the lines whose noise protects the record with the same seed in different fits.

        Args:
            seeds: The numbers of the fits in which each seed was seen, by line.
        """
        moved = {step.site for pilot in self.pilots for step in pilot.moving}
        for site in sorted(moved & set(seeds)):
            fits = seeds[site].values()
            if len(fits) == 1 and len(set.union(*fits)) > 1:
                self.fixed_seeds += (site,)
            elif any(len(numbers) > 1 for numbers in fits):
                self.few_seeds += (site,)

    @property
    def fresh_noise(self) -> tuple[Site, ...]:
        """Lines at which every call of `sample` draws new noise for the record."""
        late = {
            step.site
            for pilot in self.pilots
            for step in pilot.moving
            if step.first >= pilot.sampled_from
        }
        return tuple(sorted(late))
