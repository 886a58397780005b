"""Replay: unmodified code run in both worlds with the same noisy answers, and what that costs.

`listening` runs in the worlds and hears their draws; `lockstep` answers both worlds alike and
keeps a transcript; `laws` has the noise, `loss` the privacy loss of a transcript, `ledger` what
each line costs; `run` puts them together, and `record` has what was found.
"""
