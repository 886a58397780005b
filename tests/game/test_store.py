"""The run folder: durable, one audit, one writer, and never a traceback."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpaudit.errors import RunFolderError
from dpaudit.game import store as store_module
from dpaudit.game.store import SALTED, Private, RunFolder, specification_of
from dpaudit.game.trial import ModelClaim, Outcome, Role, Trial, TrialStatus
from dpaudit.plugins.protocols import World

SPEC = {
    "seed": 0,
    "rows": 10,
    "data": "abc",
    "schema": {"columns": []},
    "generator": {"source": "5e", "reached": "2b"},
    "attacks": [{"name": "groundhog", "source": "0"}],
}
FIRST, SECOND = Trial(Role.AUDIT, World.IN, 0), Trial(Role.AUDIT, World.OUT, 1)
NUMBERS = np.array([1.5, -0.0, np.pi, 5e-324])


def opened(path: Path, **changed: object) -> RunFolder:
    return RunFolder(path, spec={**SPEC, **changed}, versions={"numpy": "2"})


def test_other_versions_of_a_library_are_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(RunFolderError, match="numpy 2, this is 3: install that version"):
        RunFolder(tmp_path, spec=SPEC, versions={"numpy": "3"})


def finished(trial: Trial, *, seconds: float = 2.0) -> Outcome:
    return Outcome(
        trial=trial, status=TrialStatus.FINISHED, table=b"t", features=NUMBERS, seconds=seconds
    )


def filled(path: Path) -> Path:
    with opened(path) as folder:
        folder.save(finished(FIRST))
    return path


def edited(path: Path, sql: str) -> None:
    db = sqlite3.connect(path / "trials.sqlite")
    with db:
        db.execute(sql)
    db.close()


def test_a_folder_of_an_earlier_version_is_refused_in_one_line(tmp_path: Path) -> None:
    edited(filled(tmp_path), "ALTER TABLE trial DROP COLUMN table_hash")
    with pytest.raises(RunFolderError, match="earlier dpaudit began it; give another `out`"):
        opened(tmp_path)


def test_outcomes_come_back_bit_by_bit(tmp_path: Path) -> None:
    failed = Outcome(trial=SECOND, status=TrialStatus.FAILED, error="no\ud7ff", attempts=2)
    claiming = Outcome(
        trial=Trial(Role.REPLAY, World.IN, 0),
        status=TrialStatus.FINISHED,
        features=NUMBERS,
        claimed=ModelClaim(0.1, 1e-5),
    )
    with opened(tmp_path / "new" / "run") as folder:
        for outcome in (finished(FIRST), failed, claiming):
            folder.save(outcome)
    with opened(tmp_path / "new" / "run") as folder:
        stored = folder.outcomes(Role.AUDIT)
        assert list(stored) == [FIRST, SECOND]
        features = folder.outcome(FIRST).features
        assert features is not None
        assert features.tobytes() == NUMBERS.tobytes()
        assert stored.features([FIRST], slice(1, 3))[:].tobytes() == NUMBERS[1:3].tobytes()
        assert folder.outcome(SECOND) == failed
        assert folder.outcomes(Role.REPLAY)[claiming.trial].claimed == (0.1, 1e-5)
        assert folder.finished([FIRST, SECOND, claiming.trial, FIRST._replace(number=7)]) == {
            FIRST,
            SECOND,
            claiming.trial,
        }
        assert folder.seconds(Role.AUDIT) == 2.0
        assert folder.seconds(Role.NULL_CONTROL) == 0.0


def test_a_trial_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        folder.save(finished(FIRST, seconds=2.0))
        folder.save(Outcome(trial=FIRST, status=TrialStatus.FAILED, error="later"))
        stored = folder.outcomes(Role.AUDIT)[FIRST]
        assert (stored.status, stored.seconds) == (TrialStatus.FINISHED, 2.0)


def test_an_acknowledged_trial_is_on_disk_at_once(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        folder.save(finished(FIRST))
        reader = sqlite3.connect(f"file:{tmp_path / 'trials.sqlite'}?mode=ro", uri=True)
        assert reader.execute("SELECT COUNT(*) FROM trial").fetchone() == (1,)
        assert reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        reader.close()


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"data": "x" * 100}, "the table differs. Give"),
        ({"generator": {"reached": "8d1f", "source": "77"}}, "what they import has changed. Give"),
        ({"attacks": [{"name": "form", "source": "1"}]}, "attacks is groundhog there and form"),
        ({"attacks": [{"name": "groundhog", "source": "1"}]}, "the code of the generator"),
        ({"schema": Private({"a": 1})}, "audit: the schema differs. Give"),
        ({"more": True}, "more is null there and true here"),
    ],
)
def test_another_audit_is_refused_by_field(
    tmp_path: Path, changed: dict[str, object], named: str
) -> None:
    filled(tmp_path)
    with pytest.raises(RunFolderError, match=named) as raised:
        opened(tmp_path, **changed)
    assert "Give another `out`" in str(raised.value)
    assert len(str(raised.value)) < 500
    opened(tmp_path).close()  # the refusal did not keep the lock


def test_what_is_acknowledged_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.find_spec("dpaudit.game.store")
    assert spec is not None
    assert spec.loader is not None
    as_installed = importlib.util.module_from_spec(spec)  # tests have it otherwise: conftest.py
    spec.loader.exec_module(as_installed)
    monkeypatch.setattr(store_module, "SYNCHRONOUS", as_installed.SYNCHRONOUS)
    with opened(tmp_path) as folder:
        settings = [
            folder._db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous")
        ]
    assert settings == ["wal", 2]  # 2 is FULL; a crash of the machine cannot be tried here


def test_a_second_writer_is_refused_until_the_first_has_closed(tmp_path: Path) -> None:
    first = opened(tmp_path)
    with pytest.raises(RunFolderError, match="another process is using"):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()


def test_a_lock_file_of_a_dead_process_blocks_nobody(tmp_path: Path) -> None:
    dies = "folder = RunFolder(pathlib.Path('.'), spec={}, versions={}); os._exit(0)"
    script = f"import os, pathlib; from dpaudit.game.store import RunFolder; {dies}"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert (tmp_path / "lock").exists()
    RunFolder(tmp_path, spec={}, versions={}).close()


@pytest.mark.parametrize("place", ["file", "file/run", "/proc/dpaudit/run"])
def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("a file")
    with pytest.raises(RunFolderError, match=r"cannot be written: .*; give another `out`"):
        opened(tmp_path / place)


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trials.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(RunFolderError, match="file is not a database"):
        opened(tmp_path)
    (tmp_path / "trials.sqlite").unlink()
    (tmp_path / "trials.sqlite").mkdir()
    with pytest.raises(RunFolderError, match="unable to open"):
        opened(tmp_path)


def test_a_cut_store_is_refused(tmp_path: Path) -> None:
    store = filled(tmp_path) / "trials.sqlite"
    os.truncate(store, store.stat().st_size // 2)
    with pytest.raises(RunFolderError, match=r"malformed|not a database"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("UPDATE trial SET features = zeroblob(32)", "features of trial audit/in/0 have changed"),
        ("UPDATE trial SET status = 'perhaps'", "trial audit/in/0 has changed"),
        ("UPDATE trial SET world = 'between'", "between"),
        *(
            (f"UPDATE trial SET {field} = 2.5", "trial .* has changed")
            for field in [
                "number",
                "error",
                "claimed_epsilon",
                "claimed_delta",
                "seconds",
                "attempts",
            ]
        ),
        ("DELETE FROM audit", "its specification is gone"),
        ("UPDATE trial SET features = 'text'", "cannot be read"),
        ("ALTER TABLE trial RENAME COLUMN error TO mistake", "no such column"),
    ],
)
def test_a_damaged_row_is_found_before_anything_runs(tmp_path: Path, sql: str, reason: str) -> None:
    edited(filled(tmp_path), sql)
    with pytest.raises(RunFolderError, match=reason) as raised:
        opened(tmp_path)
    assert "is damaged: give another `out`" in str(raised.value)


def test_a_damaged_specification_is_refused(tmp_path: Path) -> None:
    edited(filled(tmp_path), "UPDATE audit SET spec_json = '{'")
    with pytest.raises(RunFolderError, match="cannot hold a run"):
        opened(tmp_path)


def test_a_store_that_takes_no_more_says_so_and_loses_nothing(tmp_path: Path) -> None:
    with opened(filled(tmp_path)) as folder:
        # As on a full disk: the next page cannot be had.
        pages = folder._db.execute("PRAGMA page_count").fetchone()[0]
        folder._db.execute(f"PRAGMA max_page_count = {pages}")
        large = Outcome(trial=SECOND, status=TrialStatus.FINISHED, features=np.zeros(10_000))
        with pytest.raises(RunFolderError, match=r"another trial: .*full; fix that"):
            folder.save(large)
        assert set(folder.outcomes(Role.AUDIT)) == {FIRST}
        folder._db.execute("PRAGMA max_page_count = 100000")
        folder.save(large)
    with opened(tmp_path) as folder:
        assert set(folder.outcomes(Role.AUDIT)) == {FIRST, SECOND}


def test_a_run_folder_is_its_owner_s_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        filled(tmp_path / "runs" / "run")
    finally:
        os.umask(before)
    assert (tmp_path / "runs" / "run").stat().st_mode & 0o777 == 0o700
    for file in (tmp_path / "runs" / "run").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file
    (tmp_path / "runs" / "run" / "trials.sqlite").chmod(0o644)  # as an older version left it
    with opened(tmp_path / "runs" / "run"):
        for file in (tmp_path / "runs" / "run").iterdir():
            assert file.stat().st_mode & 0o777 == 0o600, file


def test_private_values_are_kept_as_salted_digests_alone(tmp_path: Path) -> None:
    spec = {"data": Private("secret"), "schema": Private({"lower": 17.25}, {"inferred": True})}
    digests = []
    for name in ("one", "other"):
        with RunFolder(tmp_path / name, spec=spec, versions={}):
            pass
        RunFolder(tmp_path / name, spec=spec, versions={}).close()
        for file in (tmp_path / name).iterdir():
            assert b"secret" not in file.read_bytes()
            assert b"17.25" not in file.read_bytes()
        stored = specification_of(tmp_path / name)
        assert stored["schema"]["inferred"]
        digests += [stored["data"][SALTED], stored["schema"][SALTED]]
    assert len(set(digests)) == 4
    with pytest.raises(RunFolderError, match="the table differs"):
        RunFolder(tmp_path / "one", spec={**spec, "data": Private("other")}, versions={})
    (tmp_path / "one" / "salt").write_text("0" * 63)
    with pytest.raises(RunFolderError, match="lacks its file 'salt'"):
        RunFolder(tmp_path / "one", spec=spec, versions={})


def test_a_flipped_bit_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with opened(tmp_path) as folder:
        for number in range(30):
            role = Role.AUDIT if number % 3 else Role.NULL_CONTROL
            trial = Trial(role, World.IN if number % 2 else World.OUT, number)
            features = rng.normal(size=50 if number % 5 else 2000)
            folder.save(replace(finished(trial), features=features, seconds=number + 0.5))
        whole = contents(folder)
    store = tmp_path / "trials.sqlite"
    intact, noticed = store.read_bytes(), 0
    for place in rng.integers(0, 8 * len(intact), 200):
        spoilt = bytearray(intact)
        spoilt[place // 8] ^= 1 << (place % 8)
        for file in tmp_path.glob("trials.sqlite*"):
            file.unlink()
        store.write_bytes(spoilt)
        try:
            with opened(tmp_path) as folder:
                assert contents(folder) == whole, f"bit {place}"
        except RunFolderError:
            noticed += 1
    assert noticed > 100


def contents(folder: RunFolder) -> dict[object, object]:
    """All that a result is made of."""
    found: dict[object, object] = {role: folder.seconds(role) for role in Role}
    for role in Role:
        for trial in folder.outcomes(role):
            outcome = folder.outcome(trial)
            assert outcome.features is not None
            found[trial] = (outcome.features.tobytes(), replace(outcome, features=None))
    return found


@pytest.mark.parametrize(
    ("sql", "light"),
    [
        ("UPDATE trial SET seconds = 7", True),
        ("UPDATE trial SET features_sha = NULL", True),
        ("UPDATE trial SET features = zeroblob(32)", False),
        ("UPDATE trial SET features = NULL", False),
        ("DELETE FROM trial", False),
    ],
)
def test_damage_while_a_run_reads_is_noticed(tmp_path: Path, sql: str, light: bool) -> None:
    with opened(tmp_path) as folder:
        folder.save(finished(FIRST))
        outcomes = folder.outcomes(Role.AUDIT)
        edited(tmp_path, sql)
        if light:
            with pytest.raises(RunFolderError, match="audit/in/0 has changed"):
                list(outcomes.stream())
        with pytest.raises(RunFolderError, match="audit/in/0"):
            outcomes.features([FIRST])[:]


def test_outcomes_show_what_is_saved_later(tmp_path: Path) -> None:
    with opened(tmp_path) as folder:
        outcomes = folder.outcomes(Role.AUDIT)
        assert (len(outcomes), list(outcomes), outcomes.get(FIRST)) == (0, [], None)
        folder.save(finished(FIRST))
        assert (len(outcomes), list(outcomes), outcomes[FIRST].finished) == (1, [FIRST], True)
        assert FIRST._replace(role=Role.REPLAY) not in outcomes


@pytest.mark.parametrize("happens", ["deleted", "replaced", "folder deleted", "log deleted"])
def test_a_store_that_is_gone_takes_no_trial_and_gives_no_result(
    tmp_path: Path, happens: str
) -> None:
    store = tmp_path / "run" / "trials.sqlite"
    with opened(tmp_path / "run") as folder:
        folder.save(finished(FIRST))
        folder.ensure_kept()
        if happens == "folder deleted":
            shutil.rmtree(tmp_path / "run")
        elif happens == "log deleted":
            store.with_name("trials.sqlite-wal").unlink()
        else:
            content = store.read_bytes()
            store.rename(tmp_path / "elsewhere")
            if happens == "replaced":
                store.write_bytes(content)
        with pytest.raises(RunFolderError, match="was deleted or replaced while the run used it"):
            folder.save(finished(SECOND))
        with pytest.raises(RunFolderError, match="run the same command again"):
            folder.ensure_kept()


def test_a_locked_store_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store_module.BUSY_SECONDS >= 60
    monkeypatch.setattr(store_module, "BUSY_SECONDS", 0.2)
    with opened(tmp_path) as folder:
        other = sqlite3.connect(tmp_path / "trials.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RunFolderError, match="locked; end the program that uses it, then run"):
            folder.save(finished(FIRST))
        other.close()
        folder.save(finished(FIRST))
