"""Real privacy bugs of released software, with the pins, adapters and tables that prove them.

Every table was made by hand to show one flaw; none contains a real person's record.
"""

from dpaudit_generators.corpus.replayed import REPLAYED
from dpaudit_generators.corpus.rows import OURS, REPORTED, UNPROVED

BUGS = (*REPORTED, *OURS, *REPLAYED, *UNPROVED)
"""The corpus."""
