"""The form of a synthetic table: what no summary of its columns shows."""

from dpaudit_attacks.form.attack import TableForm

__all__ = ["TableForm"]
