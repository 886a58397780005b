"""The most vulnerable record, found by small attacks before an audit (`--target vulnerable`).

Published audits chose their target so, at six times the price of the audit itself ("The Elusive
Pursuit of Reproducing PATE-GAN", TMLR 2025, section 6.2: 64 candidates with 100 models in each
world). Here models of world "in" are shared by all candidates and candidates that show little are
dropped early, which together takes the trainings of one audit.

The verdict needs no correction for the choice. The target is a function of the table and of the
search's trainings; those have a role of their own, so their random streams are independent of the
audit's, and none of them is fitted on or scored later. Given the target, the audit's trials are
what they would have been had it been named beforehand, and the bound holds for each target.
"""

from dpaudit.vulnerable.halving import MOST_CANDIDATES, Halving, Round, halve
from dpaudit.vulnerable.search import find_target
from dpaudit.vulnerable.specification import TargetSearch, prepare_search

__all__ = [
    "MOST_CANDIDATES",
    "Halving",
    "Round",
    "TargetSearch",
    "find_target",
    "halve",
    "prepare_search",
]
