"""Which part of a generator leaks (`dpaudit explain`): suspects, mended one at a time.

An audit that found a violation is played again with one suspect mended: what the generator offers
in `fixes()`, the order of the table's rows, and all of them together. A mended generator that no
longer violates the claim, and whose worlds no attack of the audit tells apart better than the
claim allows, names the leak. Each bound holds by itself at the audit's confidence; which suspect
is to blame is read off several of them, and is no theorem.
"""

from dpaudit.explain.effect import Effect, Finding
from dpaudit.explain.explanation import Explanation
from dpaudit.explain.inquiry import Inquiry, explain, inquire
from dpaudit.explain.suspects import ROW_ORDER, TOGETHER

__all__ = [
    "ROW_ORDER",
    "TOGETHER",
    "Effect",
    "Explanation",
    "Finding",
    "Inquiry",
    "explain",
    "inquire",
]
