"""What may excuse a loss above the claim is looked for in every replay, not in the pilot alone."""

from __future__ import annotations

from functools import partial

from dpaudit.replaying.conclusion import doubts
from dpaudit.replaying.findings import ReplayFindings
from dpaudit.replaying.transcript import Site, Transcript, Unfollowed


def test_a_draw_that_a_counted_replay_could_not_follow_is_a_doubt() -> None:
    found = ReplayFindings(pilot=Transcript())
    loose = Transcript(unfollowed=[Unfollowed(Site("code.py", 7, "f"), "noise put with data")])
    excused = partial(doubts, found, parted=None, above=True, public_coins=False)
    assert list(excused([Transcript(), Transcript()])) == []
    [doubt] = excused([Transcript(), loose])
    assert "code.py:7 cannot be followed" in doubt
