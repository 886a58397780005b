"""White-box audits of the label bits that a PATE ensemble releases.

It serves PATE only: given what draws the labels (teachers, noise, number of labels) and a claim, it
simulates both worlds and bounds ε from the bits themselves. No generator is trained.
"""

from __future__ import annotations

from dpaudit.labels.audit import audit_labels, run_label_audit
from dpaudit.labels.result import LabelAudit
from dpaudit.labels.settings import Drawing, LabelAuditSettings
from dpaudit.labels.vote_pair import VotePair

__all__ = [
    "Drawing",
    "LabelAudit",
    "LabelAuditSettings",
    "VotePair",
    "audit_labels",
    "run_label_audit",
]
