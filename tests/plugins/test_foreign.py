"""Foreign code neither ends the program, nor makes it fail oddly, nor changes its tools."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dpaudit.errors import ClaimError, DataError, InputError, RegistryError
from dpaudit.plugins.adapt import check_table
from dpaudit.plugins.foreign import exits_refused, patches_apart, pickled, refusing
from dpaudit.plugins.named import claim_under_audit, named_generator


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
        return claim_under_audit(named, epsilon=1.0, delta=0.0, neighbours=None)

    with pytest.raises(RegistryError, match="NoClaim: its claim cannot be read: ValueError: none"):
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
    with pytest.raises(RegistryError, match=r"SimpleNamespace: its check raises: KeyError: 'age'"):
        checked(refuse(KeyError("age")))
    with pytest.raises(RegistryError, match=r"its check raises: SystemExit: 0"):
        checked(refuse(SystemExit(0)))
    with pytest.raises(InputError, match=r"its check is no method check\(data\)"):
        checked("yes")


def test_what_cannot_be_pickled_is_said_in_a_line() -> None:
    with pytest.raises(RegistryError, match=r"^g.py:G cannot be pickled for worker processes: "):
        pickled(threading.Lock(), name="g.py:G")
