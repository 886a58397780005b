"""White-box audits of the label bits that a PATE ensemble releases.

It is for PATE only: given the mechanism of the labels (teachers, noise, number of labels) and a
claim, it simulates both worlds and bounds ε from the bits themselves. No generator is trained.
"""

from __future__ import annotations

from dpaudit.labels.audit import LabelAudit, VotePair, audit_labels
from dpaudit.labels.settings import LabelAuditSettings
from dpaudit.model.choices import Drawing

__all__ = ["Drawing", "LabelAudit", "LabelAuditSettings", "VotePair", "audit_labels"]
