"""White-box audits of the label bits that a PATE ensemble releases.

It is for PATE only: given the mechanism of the labels (teachers, noise, number of labels) and a
claim, it simulates both worlds and bounds ε from the bits themselves. No generator is trained.

The public names load on first use: the help of `dpaudit audit-labels` needs the settings alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.labels.audit import LabelAudit, VotePair, audit_labels, run_label_audit
    from dpaudit.labels.settings import LabelAuditSettings
    from dpaudit.model.choices import Drawing

_MODULE_OF = {
    "Drawing": "model.choices",
    "LabelAudit": "labels.audit",
    "LabelAuditSettings": "labels.settings",
    "VotePair": "labels.audit",
    "audit_labels": "labels.audit",
    "run_label_audit": "labels.audit",
}

__all__ = [
    "Drawing",
    "LabelAudit",
    "LabelAuditSettings",
    "VotePair",
    "audit_labels",
    "run_label_audit",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'dpaudit.labels' has no attribute {name!r}")
    return getattr(import_module(f"dpaudit.{_MODULE_OF[name]}"), name)
