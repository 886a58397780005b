"""Settings of the published PATE-GANs that mean nothing."""

from __future__ import annotations

import pytest

from dpaudit.errors import SettingsError
from dpaudit_generators.published.mechanism import SwitchedPateGan
from samples import PEOPLE


@pytest.mark.parametrize("name", ["teachers", "iterations"])
@pytest.mark.parametrize("value", [0, -1, 3.5, float("inf"), float("nan")])
def test_a_number_of_teachers_or_iterations_is_whole(name: str, value: float) -> None:
    with pytest.raises(SettingsError, match=f"`{name}` must be a whole number of at least 1"):
        SwitchedPateGan(schema=PEOPLE, **{name: value})  # type: ignore[arg-type]
