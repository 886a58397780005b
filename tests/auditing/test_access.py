"""Access levels: the same game, with more or less of a model for the attacker to see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpaudit
from dpaudit.auditing.entry import audit_by_keywords
from dpaudit.auditing.games import audit_settings, build_spec
from dpaudit.auditing.settings import ATTACKS_AT, DEFAULT_ATTACKS
from dpaudit.errors import GeneratorError, RegistryError, SettingsError
from dpaudit.model.choices import Access
from dpaudit.model.tables import load
from dpaudit.report.render import render_html, render_markdown
from dpaudit.results.document import to_document
from dpaudit.results.summary import summary_lines
from dpaudit_generators.pate_gan import PateGan, PateGanMarginals
from dpaudit_generators.published import SwitchedPateGan
from dpaudit_generators.toys import LaplaceHistogram
from hidden import Hidden, HiddenTogether, schema_of_bits, table_of_bits

MODELS = 100


def audited(generator: object, **settings: Any) -> dpaudit.AuditResult:
    data = table_of_bits()
    given = {"shadow_models": MODELS, "target": "row:11", "jobs": 1, "probe": False} | settings
    return audit_by_keywords(generator, data, schema=schema_of_bits(), **given)


def spec_of(generator: object, **settings: Any) -> Any:
    table = load(table_of_bits(), schema_of_bits())
    return build_spec(generator, table, audit_settings(target="row:11", **settings))


@pytest.mark.ci
def test_rows_alone_are_harmless() -> None:
    result = audited(Hidden(), shadow_models=60)
    assert result.verdict == "consistent"
    assert result.access is None
    assert "access" not in to_document(result)


@pytest.mark.parametrize(
    "generator", [Hidden(), pytest.param(HiddenTogether(), marks=pytest.mark.ci)]
)
@pytest.mark.parametrize(
    ("access", "attack"),
    [pytest.param("model", "parameters", marks=pytest.mark.ci), ("released", "released")],
)
def test_a_hidden_leak_is_proved(
    generator: object, access: str, attack: str, tmp_path: Path
) -> None:
    result = audited(generator, access=access, out=tmp_path / "run")
    assert result.verdict == "violation", result.reasons
    assert result.attack in (attack, "combined")
    if result.attack == "combined":
        shares = result.attacks[0].shares
        assert shares is not None
        assert max(shares, key=lambda name: shares[name]) == attack
    assert result.access is Access(access)
    assert result.claim.value == 1.0  # what the attacker sees is no part of the promise
    assert f"--access {access}" in result.reproduce
    assert result.controls is not None
    assert all(control.passed for control in result.controls.named().values())
    assert to_document(result)["access"] == access
    seen = Access(access).in_words
    texts = (render_html(result), render_markdown(result), " ".join(summary_lines(result)))
    for text in texts:
        assert seen in " ".join(text.split())


@pytest.mark.ci
def test_an_honest_count_is_not_flagged() -> None:
    honest = Hidden(strength=1.0)  # Laplace noise of scale 1 on a count: exactly epsilon 1
    result = audited(honest, access="released")
    assert result.verdict != "violation"
    assert result.proved is not None
    assert result.proved <= 1.0
    assert result.controls is not None
    assert result.controls.positive.passed


@pytest.mark.ci
def test_noisy_counts_are_attacked_where_they_are_released() -> None:
    toy = LaplaceHistogram(schema=schema_of_bits(), column="a", epsilon=1.0)
    result = audited(toy, access="released")
    assert result.verdict != "violation"
    assert result.leaks == () or result.leaks[0].feature == "released"


def test_default_attacks_follow_what_is_disclosed() -> None:
    assert audit_settings().game.attacks == DEFAULT_ATTACKS
    assert audit_settings(access="model").game.attacks == ATTACKS_AT[Access.MODEL]
    audit = spec_of(Hidden(), access="model")
    names = (*DEFAULT_ATTACKS, "parameters")  # it has no discriminator
    assert tuple(name for name, _ in audit.attacks) == names == audit.settings.game.attacks
    assert audit.settings.game.hypotheses == 1
    every = spec_of(Hidden(), access="model", multiplicity="bonferroni")
    assert every.settings.game.hypotheses == 4
    both = replace(Hidden(), discloses=("parameters", "discriminator"))
    assert len(spec_of(both, access="model").attacks) == 5
    assert audit.game.view.released_facts == ()
    assert spec_of(Hidden(), access="released").game.view.released_facts == ("records",)


def test_the_specification_names_the_level_only_beyond_rows() -> None:
    rows, model = spec_of(Hidden()), spec_of(Hidden(), access="model")
    assert "access" not in rows.specification
    assert model.specification["access"] == "model"
    assert rows.id == model.id  # the same trainings


@pytest.mark.parametrize(
    ("generator", "settings", "message"),
    [
        (replace(Hidden(), discloses=()), {"access": "model"}, "discloses nothing of the kind"),
        (replace(Hidden(), released_facts=()), {"access": "released"}, "released_facts"),
        (Hidden(), {"attacks": ["parameters"]}, 'set `access="model"`'),
        (Hidden(), {"access": "model", "attacks": ["released"]}, 'set `access="released"`'),
        (Hidden(), {"access": "model", "attacks": ["logan"]}, "discriminate"),
        (Hidden(), {"access": "model", "attacks": ["groundhog"]}, "no attack looks at"),
    ],
)
def test_refusals_come_before_any_training(
    generator: object, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        spec_of(generator, **settings)


def test_refusals_of_settings() -> None:
    with pytest.raises(SettingsError, match="not one of output, model, released"):
        audit_settings(access="all")
    with pytest.raises(SettingsError, match="leave out `access`"):
        audit_settings(access="model", one_run=True)
    with pytest.raises(RegistryError, match="discloses names 'weights'"):
        spec_of(replace(Hidden(), discloses=("weights",)), access="model")


def test_a_model_that_lacks_what_its_generator_promises_is_refused() -> None:
    class Promises(Hidden):
        def fit(self, data: Any, *, seed: int | None) -> Any:
            model = super().fit(data, seed=seed)
            return type("Bare", (), {"sample": staticmethod(model.sample)})()

    with pytest.raises(GeneratorError, match="no method parameters"):
        audited(Promises(), access="model")


@pytest.mark.parametrize("access", [pytest.param("model", marks=pytest.mark.ci), "released"])
@pytest.mark.parametrize(
    "gan",
    [
        pytest.param(PateGan(schema=schema_of_bits(), teachers=4, rounds=3), marks=pytest.mark.ci),
        pytest.param(
            PateGanMarginals(schema=schema_of_bits(), teachers=4, rounds=3), marks=pytest.mark.ci
        ),
        pytest.param(
            SwitchedPateGan(schema=schema_of_bits(), teachers=4, gamma=3e-3), marks=pytest.mark.ci
        ),
    ],
    ids=["pate-gan", "pate-gan-marginals", "pate-gan-switched"],
)
def test_pate_gans_that_keep_their_claim_are_consistent(gan: object, access: str) -> None:
    result = audited(gan, access=access, shadow_models=60)
    assert result.verdict in ("consistent", "inconclusive"), result.reasons
    assert not result.failure_reasons
    assert result.proved is not None
    assert result.proved < 1.0
    assert result.controls is not None
    assert result.controls.positive.passed
    names = {*(result.multiplicity.attacks or ()), *(attack.name for attack in result.attacks)}
    assert names >= ({"logan", "parameters"} if access == "model" else {"released"})


@dataclass(frozen=True)
class _Known(Hidden):
    """Says of the number of records that each adds one, or whatever else it is told to say."""

    effect: object = (1.0,)

    def released_effect(self, record: pd.DataFrame) -> object:
        assert len(record) == 1
        return self.effect


def test_the_effect_of_the_target_is_what_the_generator_says() -> None:
    def effect(**settings: Any) -> Any:
        return spec_of(_Known(), **settings).game.view.released_effect

    assert effect(access="released").tolist() == [1.0]
    assert effect(access="released", neighbours="replace-one").tolist() == [0.0]
    assert effect() is None
    assert spec_of(Hidden(), access="released").game.view.released_effect is None


@pytest.mark.parametrize("effect", [(1.0, 2.0), (), (float("nan"),), 1.0, ("one",), None])
def test_an_effect_that_is_not_one_number_for_each_fact_is_refused(effect: object) -> None:
    with pytest.raises(RegistryError, match="released_effect"):
        spec_of(_Known(effect=effect), access="released")
