"""Real privacy bugs of released software, with the pins, adapters and tables that prove them.

Every table was made by hand to show one flaw; none holds anyone's record.
"""

from dpaudit_generators.corpus.ours import OURS
from dpaudit_generators.corpus.reported import REPORTED
from dpaudit_generators.corpus.unproved import UNPROVED

BUGS = (*REPORTED, *OURS, *UNPROVED)
"""The corpus."""
