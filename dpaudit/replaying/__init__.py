"""Replay: runs unmodified code in both worlds with the same noisy answers, to get its privacy loss.

`listening` runs in the worlds and intercepts their draws; `match` gives both worlds the same
answers and keeps a transcript; `laws` has the noise distributions, `charges` and `spending` what
the steps of a transcript cost, `ledger` the cost of each line; `reading` and `coins` show what a
release leaks; `run` puts them together, and `record` holds the findings.
"""
