"""Which part of a generator leaks (`dpaudit explain`): suspects, fixed one at a time.

An audit that found a violation is run again with one suspect fixed: what the generator offers
in `fixes()`, the order of the table's rows, and all of them together. A fixed generator that no
longer violates the claim, and whose worlds no attack of the audit tells apart better than the
claim allows, names the leak. Each bound holds by itself at the audit's confidence; which suspect
is to blame is read off several of them, and is not a theorem.
"""

from dpaudit.explain.explanation import Effect, Explanation, FixedAudit
from dpaudit.explain.run import Inquiry, explain, inquire
from dpaudit.explain.suspects import ROW_ORDER, TOGETHER

__all__ = [
    "ROW_ORDER",
    "TOGETHER",
    "Effect",
    "Explanation",
    "FixedAudit",
    "Inquiry",
    "explain",
    "inquire",
]
