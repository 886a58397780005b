"""What may excuse a loss above the claim is looked for in every replay, not in the pilot alone."""

from __future__ import annotations

from dpaudit.replaying.conclusion import doubts
from dpaudit.replaying.setting import ReplayFindings
from dpaudit.replaying.transcript import Site, Transcript, Unfollowed


def test_a_draw_that_a_counted_replay_could_not_follow_is_a_doubt() -> None:
    found = ReplayFindings(pilot=Transcript(), counted=[Transcript(), Transcript()], above=True)
    assert list(doubts(found, public_coins=False)) == []
    loose = Transcript(unfollowed=[Unfollowed(Site("code.py", 7, "f"), "noise put with data")])
    found.counted = [Transcript(), loose]
    [doubt] = doubts(found, public_coins=False)
    assert "code.py:7 cannot be followed" in doubt
