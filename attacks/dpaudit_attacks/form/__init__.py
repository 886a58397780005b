"""The form of a synthetic table: properties that column summaries do not show."""

from dpaudit_attacks.form.attack import TableForm

__all__ = ["TableForm"]
