"""Studies made with dpaudit: what was asked, how to run it again, and what came out.

Run from the repository: `python -m reports.NAME.run`. README.md says what all studies share.
"""
