"""Which part of a generator leaks (`dpaudit explain`): suspects, fixed one at a time.

An audit that found a violation is run again with one suspect fixed: what the generator offers
in `fixes()`, the order of the table's rows, and all of them together. The suspect is the leak if
its fixed generator no longer violates the claim, and no attack of the audit distinguishes the
worlds better than the claim allows. Each bound holds by itself at the audit's confidence; the
conclusion from several of them is not a theorem.
"""

from dpaudit.explain.explanation import ROW_ORDER, TOGETHER, Effect, Explanation, FixedAudit
from dpaudit.explain.run import Inquiry, explain, inquire

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
