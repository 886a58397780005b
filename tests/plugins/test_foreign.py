"""Foreign code neither ends the program, nor makes it fail oddly, nor changes its tools."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpaudit.auditing.games import audit_settings
from dpaudit.auditing.two_worlds.attacking import Part, fit_attack
from dpaudit.bounds import EpsilonGuarantee, ThresholdRule
from dpaudit.errors import AttackError, ClaimError, DataError, InputError, RegistryError
from dpaudit.model.claim import StatedClaim
from dpaudit.model.column import Column, Kind
from dpaudit.model.schema import Schema
from dpaudit.plugins.exits import exits_refused
from dpaudit.plugins.foreign import patches_apart, pickled, refusing
from dpaudit.plugins.named import (
    NamedAttack,
    as_generator,
    check_table,
    claim_under_audit,
    named_generator,
)
from dpaudit.plugins.protocols import FeatureName, FloatArray, Scorer
from samples import game_view


class LeavingError(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


def leave() -> None:
    os._exit(0)


def become_another() -> None:
    os.execv("/bin/true", ["true"])


def leave_saying() -> None:
    raise LeavingError


@pytest.mark.parametrize("end", [leave, become_another, leave_saying, lambda: exit(0)])
def test_whatever_ends_the_program_is_an_error_of_input(end: Callable[[], None]) -> None:
    says = r"^g.py: importing fails: (SystemExit|LeavingError)"
    with pytest.raises(RegistryError, match=says), refusing("g.py: importing fails"):
        end()
    assert os._exit.__module__ == "posix"


def test_errors_of_ours_and_ctrl_c_pass() -> None:
    for error in (DataError("no such column"), KeyboardInterrupt()):
        with pytest.raises(type(error)), refusing("g.py"):
            raise error


def test_a_thread_cannot_end_the_program_but_a_forked_process_itself() -> None:
    caught = []

    def leave_in_a_thread() -> None:
        try:
            leave()
        except SystemExit as error:
            caught.append(str(error))

    with exits_refused():
        thread = threading.Thread(target=leave_in_a_thread)
        thread.start()
        thread.join()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12: forks a process that has threads
            child = os.fork()
        if child == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert caught == ["it calls os._exit in the program's own process"]


def test_foreign_patches_are_there_for_foreign_code_alone() -> None:
    mean, clock = np.mean, time.time
    added = "added_by_a_generator"
    with patches_apart():
        np.mean = time.time = None  # type: ignore[assignment]
        del np.random.default_rng
        setattr(np, added, 1)
    assert (np.mean, time.time) == (mean, clock)
    assert np.random.default_rng(0).random() < 1
    with patches_apart():
        assert np.mean is None
        assert not hasattr(np.random, "default_rng")
        np.mean, time.time = mean, clock
        np.random.default_rng = np.random._generator.default_rng
    with patches_apart():
        assert np.mean is mean
        assert getattr(np, added) == 1
    delattr(np, added)


def test_the_last_name_of_a_module_is_there_again_if_foreign_code_deletes_it() -> None:
    last, own = [*vars(math).items()][-1]
    with patches_apart():
        delattr(math, last)
    assert vars(math)[last] is own
    with patches_apart():
        assert not hasattr(math, last)
        setattr(math, last, own)
    assert vars(math)[last] is own


class Honest:
    claim: object = None

    def fit(self, data: pd.DataFrame, *, seed: int) -> Honest:
        return self

    def sample(self, n: int, *, seed: int) -> pd.DataFrame:
        raise NotImplementedError


class NoClaim(Honest):
    @property
    def claim(self) -> object:  # type: ignore[override]
        raise ValueError("none yet")


class ClaimNumber(Honest):
    claim = 1.0


def test_a_claim_that_raises_or_is_none_is_said_in_a_line() -> None:
    def claim_of(generator: Honest) -> object:
        named = named_generator(generator, {}, {})
        return claim_under_audit(named, StatedClaim(epsilon=1.0, delta=0.0))

    with pytest.raises(
        RegistryError, match=r"NoClaim: its claim cannot be read: ValueError at \S+ in claim: none"
    ):
        claim_of(NoClaim())
    with pytest.raises(ClaimError, match=r"ClaimNumber: its claim is of type float: make it a"):
        claim_of(ClaimNumber())


def test_a_check_that_raises_or_is_none_is_said_in_a_line() -> None:
    data = pd.DataFrame({"x": [1.0]})

    def refuse(error: BaseException) -> Callable[[pd.DataFrame], None]:
        def check(data: pd.DataFrame) -> None:
            raise error

        return check

    def checked(check: object) -> None:
        check_table(SimpleNamespace(fit=None, check=check), data)

    checked(lambda data: None)
    with pytest.raises(DataError, match=r"^too few rows$"):
        checked(refuse(DataError("too few rows")))
    with pytest.raises(
        RegistryError, match=r"SimpleNamespace: its check raises: KeyError at \S+ in check: 'age'"
    ):
        checked(refuse(KeyError("age")))
    with pytest.raises(RegistryError, match=r"its check raises: SystemExit at \S+ in \S+: 0"):
        checked(refuse(SystemExit(0)))
    with pytest.raises(InputError, match=r"its check is not a method check\(data\)"):
        checked("yes")


class AskedForItsSeed(Honest):
    @property
    def seedable(self) -> bool:
        os._exit(0)


def test_a_generator_that_ends_the_program_when_asked_for_its_seed_is_refused_at_once() -> None:
    with pytest.raises(RegistryError, match=r"AskedForItsSeed: its seedable cannot be read: Sys"):
        as_generator(AskedForItsSeed(), name="g.py:G")


VIEW = game_view(
    Schema(columns=(Column(name="x", kind=Kind.BINARY, categories=(0, 1)),)),
    pd.DataFrame({"x": [1]}),
)


class BadAttack:
    """An attack that ends the program in one of its methods."""

    def __init__(self, at: str) -> None:
        self.at = at

    def _reached(self, method: str) -> None:
        if method == self.at:
            leave()

    def check(self, game: object) -> None:
        self._reached("check")

    def feature_names(self, game: object) -> tuple[FeatureName, ...]:
        self._reached("feature_names")
        return (FeatureName("x", "mean"),)

    def features(self, table: pd.DataFrame, game: object) -> FloatArray:
        raise NotImplementedError

    def fit(self, features: FloatArray, member: object, *, seed: int) -> Scorer:
        self._reached("fit")

        def scorer(features: FloatArray) -> FloatArray:
            self._reached("scorer")
            return features[:, 0]

        return scorer


@pytest.mark.parametrize("at", ["check", "feature_names"])
def test_an_attack_that_ends_the_program_before_a_run_is_an_error_of_input(at: str) -> None:
    named = NamedAttack("bad", BadAttack(at))
    with pytest.raises(RegistryError, match=rf"attack bad: its {at} raises: SystemExit"):
        named.check(VIEW)


def test_an_attack_that_cannot_name_its_features_after_training_has_failed() -> None:
    with pytest.raises(AttackError, match=r"attack bad: its feature_names raises: SystemExit"):
        NamedAttack("bad", BadAttack("feature_names")).feature_names(VIEW)


@pytest.mark.parametrize("rule", ThresholdRule)
@pytest.mark.parametrize("at", ["fit", "scorer"])
def test_an_attack_that_ends_the_program_while_it_learns_has_failed(
    at: str, rule: ThresholdRule
) -> None:
    part = Part(np.arange(20.0).reshape(20, 1), np.arange(20) % 2 == 0)
    with pytest.raises(AttackError, match=rf"{at} raises: SystemExit"):
        fit_attack(
            BadAttack(at),
            part,
            settings=audit_settings(threshold=rule),
            guarantee=EpsilonGuarantee(0.0),
            rng=np.random.default_rng(0),
        )


def test_what_cannot_be_pickled_is_said_in_a_line() -> None:
    with pytest.raises(RegistryError, match=r"^g.py:G cannot be pickled for worker processes: "):
        pickled(threading.Lock(), name="g.py:G")
