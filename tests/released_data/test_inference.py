import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import SettingsError
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.released_data.inference import Guesser, Inference, choose_secrets, infer_attributes
from dpaudit.released_data.rows import encode

SCHEMA = Schema(
    columns=(
        *(
            Column(name=name, kind=Kind.CONTINUOUS, lower=0.0, upper=1.0, missing=name == "c")
            for name in "abc"
        ),
        Column(name="secret", kind=Kind.CATEGORICAL, categories=tuple("uvwxyz")),
        Column(name="public", kind=Kind.BINARY, categories=("no", "yes")),
    ),
    label="secret",
)


def table(n: int, seed: int) -> pd.DataFrame:
    """The secret is anyone's guess; whether "public" is yes is seen from a."""
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(rng.random((n, 3)), columns=list("abc"))
    found.loc[rng.random(n) < 0.1, "c"] = np.nan
    found["secret"] = rng.choice(list("uvwxyz"), n)
    found["public"] = np.where(found["a"] > 0.5, "yes", "no")
    return SCHEMA.canonical(found)


def inferred(
    train: pd.DataFrame, synthetic: pd.DataFrame, holdout: pd.DataFrame | None
) -> dict[tuple[str, Guesser], Inference]:
    found = infer_attributes(
        encode(train, SCHEMA),
        encode(synthetic, SCHEMA),
        None if holdout is None else encode(holdout, SCHEMA),
        SCHEMA,
        secrets=("secret", "public", "c"),
        rng=np.random.default_rng(0),
        confidence=0.95,
    )
    return {(one.secret, one.guesser): one for one in found}


def test_a_copied_table_gives_secrets_of_train_records_away() -> None:
    train = table(400, 1)
    found = inferred(train, train, table(400, 2))
    assert len(found) == 3 * len(Guesser)
    closest = found["secret", Guesser.CLOSEST]
    assert closest.right.train.rate == 1.0
    assert closest.right.holdout is not None
    assert closest.right.holdout.rate < 0.3
    assert closest.baseline < 0.3
    assert closest.right.proved
    assert found["c", Guesser.CLOSEST].right.train.rate == 1.0
    assert found["secret", Guesser.MODEL].right.proved


def test_what_holds_of_the_population_is_no_leak() -> None:
    found = inferred(table(400, 1), table(400, 3), table(400, 2))
    model = found["public", Guesser.MODEL]
    assert model.right.train.rate > 0.95 > 0.7 > model.baseline
    assert not any(one.right.proved for one in found.values())


def test_without_a_holdout_nothing_is_proved() -> None:
    train = table(200, 1)
    assert not any(one.right.proved for one in inferred(train, train, None).values())


def test_secrets_are_the_label_and_the_first_columns_unless_they_are_named() -> None:
    assert choose_secrets(None, SCHEMA) == ("secret", "a", "b", "c", "public")
    assert choose_secrets(["b", "b"], SCHEMA) == ("b",)
    with pytest.raises(SettingsError, match=r"'secrat', which is not a column \(did you mean"):
        choose_secrets(["secrat"], SCHEMA)
