"""An odometer for released labels."""

from __future__ import annotations

from dpaudit.errors import BudgetError, SettingsError


class LabelBudget:
    """A fixed number of labels, fixed before the data is seen and counted down as they are drawn.

    Call `spend` before each draw. A label that is drawn and then discarded has been paid for:
    the draw costs privacy, not the use.

    Args:
        labels: How many labels may be drawn, at least 0.

    Raises:
        SettingsError: If the number of labels is negative.
    """

    __slots__ = ("_labels", "_spent")

    def __init__(self, labels: int) -> None:
        if labels < 0:
            raise SettingsError(f"`labels` is {labels}: use a count, at least 0")
        self._labels = labels
        self._spent = 0

    @property
    def spent(self) -> int:
        """How many labels have been paid for."""
        return self._spent

    @property
    def left(self) -> int:
        """How many labels may still be drawn."""
        return self._labels - self._spent

    def spend(self, labels: int = 1) -> None:
        """Pays for labels, before they are drawn.

        Args:
            labels: How many, at least 1.

        Raises:
            BudgetError: If fewer are left; nothing is spent then.
            SettingsError: If the number is below 1.
        """
        if labels < 1:
            raise SettingsError(f"`labels` is {labels}: pay for at least 1")
        if labels > self.left:
            raise BudgetError(
                f"{labels} labels asked, {self.left} of all {self._labels} labels of the privacy "
                "budget are left: stop training, or plan a larger budget before the next run"
            )
        self._spent += labels
