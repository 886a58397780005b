"""What may excuse a loss above the claim is looked for in every replay, not in the pilot alone."""

from __future__ import annotations

from dpaudit.replaying.run import _doubts, _Found
from dpaudit.replaying.transcript import Site, Transcript, Unfollowed


def test_a_draw_that_a_counted_replay_could_not_follow_is_a_doubt() -> None:
    found = _Found(pilot=Transcript())
    loose = Transcript(unfollowed=[Unfollowed(Site("code.py", 7, "f"), "noise put with data")])
    assert (
        list(_doubts(found, [Transcript(), Transcript()], None, above=True, public_coins=False))
        == []
    )
    [doubt] = _doubts(found, [Transcript(), loose], None)
    assert "code.py:7 cannot be followed" in doubt
