"""A caller's claim: what is no number is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from dpaudit.errors import SettingsError
from dpaudit.model.claim import StatedClaim


@pytest.mark.parametrize("name", ["epsilon", "delta", "mu", "rho"])
def test_a_number_given_as_text_is_refused_by_its_name(name: str) -> None:
    given: dict[str, Any] = {name: "1"}
    with pytest.raises(SettingsError, match=rf"`{name}` must be a number, got '1'"):
        StatedClaim(**given)
