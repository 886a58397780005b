"""Evidence packs: what they hold, that their verdict follows from it, and what is refused."""

from __future__ import annotations

import builtins
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from dpaudit.bounds import attack_confidence, clopper_pearson, exact, fair_coin, one_run_in_turn
from dpaudit.cli.console import ExitCode
from dpaudit.cli.main import app
from dpaudit.evidence import pack, script
from dpaudit.evidence.pack import Manifest, check_pack, pack_files, zip_files
from dpaudit.results.record import AuditRecord
from dpaudit.results.verdict import Verdict

Make = Callable[..., AuditRecord]
DELTA, CONFIDENCE = 1e-5, 0.95
IN = [0.9] * 57 + [0.2] * 3
OUT = [0.1] * 59 + [0.8]
COUNTS = {"false_negatives": 3, "false_positives": 1, "n_in": 60, "n_out": 60}
GUESSES = {"right": [30, 50], "made": [31, 50], "trials": 120}
RIGHT = [True] * 40 + [True, False] * 10


def bounds_of(**some: float) -> dict[str, float | None]:
    keys = ("exact", "fair_coin", "clopper_pearson", "sequential", "one_run", "one_run_in_turn")
    return {key: some.get(key) for key in keys}


def two_worlds(record_of: Make, *, coins: bool, sequential: bool = False) -> AuditRecord:
    """An audit in two worlds whose numbers agree."""
    each = attack_confidence(CONFIDENCE, 1, sequential=sequential)
    given = {"delta": DELTA, "confidence": each}
    some = {"clopper_pearson": clopper_pearson(**COUNTS, **given)}
    if coins:
        some["fair_coin"] = fair_coin(**GUESSES, **given)
    else:
        some["exact"] = exact(**COUNTS, **given)
    if sequential:
        some["sequential"] = 0.5
    ended = {"trials": 240, "cap": 240, "stopped_early": False}
    attack = {
        "name": "groundhog",
        "auc": 0.98,
        "bounds": bounds_of(**some),
        "counts": COUNTS,
        "threshold": {"value": 0.5, "direction": "higher"},
        **({"guesses": GUESSES} if coins else {}),
    }
    return record_of(
        proved=some["fair_coin" if coins else "exact"],
        bounds=bounds_of(**some),
        attacks=[attack],
        counts=COUNTS,
        threshold=attack["threshold"],
        scores={"in": IN, "out": OUT},
        multiplicity={"rule": "select", "hypotheses": 1},
        game={"name": "two worlds", "sequential": ended if sequential else None},
    )


def one_run(record_of: Make) -> AuditRecord:
    """An audit of one training."""
    proved = one_run_in_turn(RIGHT, delta=DELTA, confidence=CONFIDENCE)
    attack = {"name": "groundhog", "auc": 0.9, "bound": proved, "right": RIGHT}
    return record_of(
        proved=proved,
        bounds=bounds_of(one_run_in_turn=proved),
        attacks=[],
        counts=None,
        threshold=None,
        threshold_rule=None,
        multiplicity={"rule": "bonferroni", "hypotheses": 1},
        game={
            "name": "one run",
            "canaries": len(RIGHT),
            "included": 31,
            "guesses": 40,
            "correct": 40,
            "gaussian_estimate": None,
            "interference": 0.1,
            "attacks": [attack],
        },
    )


def many_records(record_of: Make) -> AuditRecord:
    """An audit of many records per model: 30 models with 4 coins each."""
    shared = {**GUESSES, "by_training": [3] * 21 + [2] * 9}
    proved = fair_coin(**shared, delta=DELTA, confidence=CONFIDENCE)
    record = two_worlds(record_of, coins=True)
    [attack] = record.to_document()["attacks"]
    bounds = bounds_of(fair_coin=proved)
    each = [{"row": row, "guesses": 20, "correct": 20} for row in range(4)]
    return record_of(
        proved=proved,
        bounds=bounds,
        attacks=[{**attack, "guesses": shared, "bounds": bounds}],
        counts=COUNTS,
        threshold=attack["threshold"],
        scores={"in": IN, "out": OUT},
        multiplicity={"rule": "select", "hypotheses": 1},
        game={"name": "many records", "scored": 30, "each": each},
    )


@pytest.fixture
def record(record_of: Make) -> AuditRecord:
    return two_worlds(record_of, coins=True)


@pytest.mark.parametrize(
    ("edit", "differs"),
    [
        ({"verdict": "consistent"}, "the verdict: violation"),
        ({"proved": 0.5}, "the bound that decides is one of these"),
        ({"counts": {**COUNTS, "false_positives": 40}}, "errors of groundhog"),
    ],
    ids=lambda of: next(iter(of)) if isinstance(of, dict) else "",
)
def test_a_result_that_was_edited_is_refused_by_every_command_that_reads_it(
    record: AuditRecord, tmp_path: Path, edit: dict[str, Any], differs: str
) -> None:
    plain, edited, file = tmp_path / "plain", tmp_path / "edited", tmp_path / "pack.zip"
    for folder, more in ((plain, {}), (edited, edit)):
        folder.mkdir()
        (folder / "result.json").write_text(json.dumps(record.to_document() | more))
    for words in (
        ["report", str(edited)],
        ["report", str(edited / "result.json"), "--json"],
        ["compare", str(plain), str(edited)],
        ["evidence", str(edited), "--out", str(file)],
    ):
        ended = CliRunner().invoke(app, words)
        assert ended.exit_code == ExitCode.USAGE, ended.output
        assert ended.stdout == ""
        [line] = ended.stderr.splitlines()
        assert "was edited" in line
        assert differs in line
    assert sorted(path.name for path in edited.iterdir()) == ["result.json"]
    assert not file.exists()
    assert CliRunner().invoke(app, ["report", str(plain)]).exit_code == ExitCode.PASS


@pytest.fixture
def packed(tmp_path: Path) -> Callable[[dict[str, bytes]], Path]:
    def write(files: dict[str, bytes]) -> Path:
        path = tmp_path / "pack.zip"
        path.write_bytes(zip_files(files))
        return path

    return write


def evidence(*words: object) -> Result:
    return CliRunner().invoke(app, ["evidence", *map(str, words)])


GAMES: dict[str, Callable[[Make], AuditRecord]] = {
    "fair coin": lambda make: two_worlds(make, coins=True),
    "exact": lambda make: two_worlds(make, coins=False),
    "one run": one_run,
    "many records": many_records,
}


@pytest.mark.parametrize("game", GAMES)
def test_the_verdict_of_every_game_is_reproduced(
    game: str, record_of: Make, packed: Callable[[dict[str, bytes]], Path]
) -> None:
    found = check_pack(packed(pack_files(GAMES[game](record_of))))
    assert found.differences == ()
    assert found.not_recomputed == ()
    assert found.headline == "REPRODUCED  the verdict follows from the pack: violation"
    labels = "exact|Clopper-Pearson|fair coin|one-run, in turn|one-run"
    named = [one for one in found.recomputed if "bound of" in one]
    assert named
    assert all(re.match(rf"({labels}) bound of groundhog", one) for one in named)


def test_a_sequential_bound_is_not_recomputed(
    record_of: Make, packed: Callable[[dict[str, bytes]], Path]
) -> None:
    path = packed(pack_files(two_worlds(record_of, coins=False, sequential=True)))
    found = check_pack(path)
    assert found.differences == ()
    assert found.not_recomputed == ("the sequential bound, which needs every bet in order",)
    assert evidence("verify", path).exit_code == ExitCode.INCONCLUSIVE


def test_what_is_proved_without_last_bits_is_not_recomputed(
    record: AuditRecord, packed: Callable[[dict[str, bytes]], Path]
) -> None:
    found = check_pack(packed(pack_files(replace(record, proved_without_bits=0.5))))
    assert found.differences == ()
    [unknown] = found.not_recomputed
    assert unknown.startswith("the bound without last bits")


def test_the_same_run_gives_the_same_file_without_anything_private(record: AuditRecord) -> None:
    files = pack_files(record)
    assert zip_files(files) == zip_files(dict(reversed(files.items())))
    assert sorted(files) == [
        *("README.md", "manifest.json", "report.html", "report.md", "requirements.txt"),
        *("result.json", "verify.py"),
    ]
    assert json.loads(files["result.json"]) == json.loads(record.to_json())


def test_the_manifest_fills_what_a_registry_asks_for(record: AuditRecord, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_bytes(pack_files(record)["manifest.json"])
    deployment = Manifest.load(tmp_path / "m.json").deployment
    assert deployment.privacy_unit == "one record: add or remove one record"
    assert deployment.flavour == "approximate differential privacy"
    assert deployment.accounting == "PATE-GAN, 144 labels by 50 teachers"
    assert deployment.testing.verdict is Verdict.VIOLATION
    assert deployment.owner is None


@pytest.mark.parametrize(
    "game",
    [
        "fair coin",
        pytest.param("many records", marks=pytest.mark.ci),
        pytest.param("one run", marks=pytest.mark.ci),
    ],
)
def test_the_script_needs_nothing_of_dpaudit(game: str, record_of: Make, tmp_path: Path) -> None:
    for name, content in pack_files(GAMES[game](record_of)).items():
        (tmp_path / name).write_bytes(content)
    text = (tmp_path / "verify.py").read_text()
    assert "import dpaudit" not in text
    assert "from dpaudit" not in text
    command = [sys.executable, "verify.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if game == "one run":
        assert "not recomputed here: the bound that decides" in done.stdout
    else:
        assert "same  fair-coin bound of groundhog" in done.stdout
    changed = (tmp_path / "result.json").read_text().replace('"right": [', '"right": [\n')
    (tmp_path / "result.json").write_text(changed)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "DIFFERS  result.json does not have the digest of the manifest" in done.stdout


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=4),
    st.sampled_from([0.0, 1e-5, 1e-3]),
)
def test_the_script_computes_the_same_fair_coin_bound(
    counts: list[tuple[int, int]], delta: float
) -> None:
    right, made = [min(one) for one in counts], [max(one) for one in counts]
    guesses = {"right": right, "made": made, "trials": sum(made) + 20}
    wanted = fair_coin(**guesses, delta=delta, confidence=CONFIDENCE)
    assert script.fair_coin(guesses, delta, CONFIDENCE) == pytest.approx(wanted, abs=1e-6)


@given(st.integers(0, 30), st.integers(0, 40), st.sampled_from([0.0, 1e-5, 0.1]))
def test_the_script_computes_the_same_clopper_pearson_bound(fn: int, fp: int, delta: float) -> None:
    errors = {"false_negatives": fn, "false_positives": fp, "n_in": 30, "n_out": 40}
    wanted = clopper_pearson(**errors, delta=delta, confidence=CONFIDENCE)
    assert script.clopper_pearson(errors, delta, CONFIDENCE) == pytest.approx(wanted, abs=1e-9)


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "a bound": ({"proved": 9.0}, "the bound that decides is one of these"),
    "a score": ({"scores": {"in": [0.1, *IN[1:]], "out": OUT}}, "errors of groundhog"),
    "an error": ({"counts": {**COUNTS, "false_negatives": 2}}, "errors of groundhog"),
    "the verdict": ({"verdict": "consistent"}, "the verdict: violation"),
    "the claim": ({"claim": {"epsilon": 9.0}}, "the verdict: "),
    "the confidence": ({"confidence": 0.99}, "fair coin bound of groundhog"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_numbers_that_do_not_agree_are_found_although_every_digest_is_right(
    change: str, record_of: Make, packed: Callable[[dict[str, bytes]], Path]
) -> None:
    whole = two_worlds(record_of, coins=True).to_document()
    changes, what = CHANGES[change]
    keep = ("proved", "bounds", "attacks", "counts", "threshold", "scores", "multiplicity", "game")
    changed = record_of(**{**{key: whole[key] for key in keep}, **changes})
    found = check_pack(packed(pack_files(changed)))
    assert any(one.startswith(what) for one in found.differences)


@pytest.mark.parametrize("name", ["result.json", "report.html", "verify.py", "README.md"])
def test_a_changed_file_is_found(
    name: str, record: AuditRecord, packed: Callable[[dict[str, bytes]], Path]
) -> None:
    files = pack_files(record)
    path = packed({**files, name: files[name] + b"\n"})
    found = check_pack(path)
    assert found.differences == (f"{name} does not have the digest of the manifest",)
    done = evidence("verify", path, "--quiet")
    assert done.exit_code == ExitCode.VIOLATION
    assert done.stdout.startswith(f"DIFFERS  {name} does not have the digest")


def test_a_report_that_says_something_else_is_found_although_its_digest_is_right(
    record: AuditRecord, packed: Callable[[dict[str, bytes]], Path]
) -> None:
    files = pack_files(record)
    files["report.md"] += b"All is well.\n"
    manifest = json.loads(files["manifest.json"])
    manifest["files"]["report.md"] = pack.digest(files["report.md"])
    files["manifest.json"] = (json.dumps(manifest, indent=2) + "\n").encode()
    found = check_pack(packed(files))
    assert "report.md is not what the result gives" in found.differences


def test_another_version_says_so_and_writes_nothing_again(
    record: AuditRecord,
    packed: Callable[[dict[str, bytes]], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as other:
        other.setattr(pack, "__version__", "0.0.9")
        path = packed(pack_files(record))
    done = evidence("verify", path)
    assert done.exit_code == ExitCode.PASS
    assert "versions  written by 0.0.9, checked by this version" in done.stdout
    assert "written again" not in done.stdout


def run_of(record: AuditRecord, folder: Path) -> Path:
    run = folder / "run"
    run.mkdir()
    (run / "result.json").write_text(record.to_json())
    return run


def test_a_run_is_packed_and_verified(record: AuditRecord, tmp_path: Path) -> None:
    run, out = run_of(record, tmp_path), tmp_path / "pack.zip"
    done = evidence(run, "-o", out)
    assert done.exit_code == ExitCode.PASS, done.output
    assert pack.digest(out.read_bytes()) in done.stdout
    checked = evidence("verify", out)
    assert checked.exit_code == ExitCode.PASS
    assert "signature none: ask the author for the SHA-256 of the file" in checked.stdout
    document = json.loads(evidence("verify", out, "--json").stdout)
    assert document["signature"] == "none"


def test_a_run_that_has_not_finished_is_one_line(tmp_path: Path) -> None:
    done = evidence(tmp_path, "-o", tmp_path / "pack.zip")
    assert done.exit_code == ExitCode.USAGE
    assert done.stderr.startswith("error: no result at ")
    assert done.stderr.count("\n") == 1


def test_a_replay_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "replay.json").write_text('{"schema_version": 1, "ledger": []}')
    done = evidence(tmp_path / "replay.json", "-o", tmp_path / "pack.zip")
    assert done.exit_code == ExitCode.USAGE
    assert "replay.json is a replay: packs hold audits" in done.stderr
    assert done.stderr.count("\n") == 1


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-400])


def _corrupt(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[200] ^= 255
    path.write_bytes(content)


def _climbing(path: Path) -> None:
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../../etc/passwd", "root")


def _twice(path: Path) -> None:
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(path, "a") as archive,
    ):
        archive.writestr("result.json", "{}")


def _lacking(path: Path) -> None:
    path.write_bytes(zip_files({"result.json": b"{}"}))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_truncated, "is not an archive, or is cut off: get the whole file again"),
        (_corrupt, "is not an archive, or is cut off: get the whole file again"),
        (_climbing, "holds '../../etc/passwd', which is no part of a pack, or twice"),
        (_twice, "holds 'result.json', which is no part of a pack, or twice"),
        (_lacking, "lacks README.md: get the pack again from its source"),
        (Path.unlink, "no pack at"),
    ],
)
def test_a_damaged_pack_is_one_line(
    damage: Callable[[Path], None],
    words: str,
    record: AuditRecord,
    packed: Callable[[dict[str, bytes]], Path],
) -> None:
    path = packed(pack_files(record))
    damage(path)
    done = evidence("verify", path)
    assert done.exit_code == ExitCode.USAGE
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_too_large_for_a_pack_is_not_opened(
    record: AuditRecord,
    packed: Callable[[dict[str, bytes]], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = packed(pack_files(record))
    monkeypatch.setattr(pack, "_MOST_BYTES", 10)
    assert "is too large for a pack" in evidence("verify", path).stderr


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A private key and the public one."""
    private = ed25519.Ed25519PrivateKey.generate()
    files = tmp_path / "private.pem", tmp_path / "public.pem"
    files[0].write_bytes(_pem(private))
    files[1].write_bytes(
        private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return files


def _pem(private: Any) -> bytes:
    pem: bytes = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return pem


def test_a_signature_is_checked(
    record: AuditRecord, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    run, out = run_of(record, tmp_path), tmp_path / "pack.zip"
    assert evidence(run, "-o", out, "--sign", keys[0]).exit_code == ExitCode.PASS
    assert "signature valid" in evidence("verify", out).stdout
    assert evidence("verify", out, "--key", keys[1]).exit_code == ExitCode.PASS


def test_another_key_or_no_signature_differs(
    record: AuditRecord, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    run, out = run_of(record, tmp_path), tmp_path / "pack.zip"
    evidence(run, "-o", out)
    assert "the pack has no signature" in evidence("verify", out, "--key", keys[1]).stdout
    other = tmp_path / "other.pem"
    other.write_bytes(_pem(ed25519.Ed25519PrivateKey.generate()))
    evidence(run, "-o", out, "--sign", other)
    done = evidence("verify", out, "--key", keys[1])
    assert done.exit_code == ExitCode.VIOLATION
    assert "the signature is not one of this manifest by this key" in " ".join(done.stdout.split())


def test_a_changed_manifest_has_no_valid_signature(
    record: AuditRecord, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    run, out = run_of(record, tmp_path), tmp_path / "pack.zip"
    evidence(run, "-o", out, "--sign", keys[0])
    files = pack.read_pack(out)
    changed = pack_files(replace(record, seed=5))
    out.write_bytes(zip_files({**files, **changed}))
    found = check_pack(out)
    assert found.signature == "invalid"
    out.write_bytes(zip_files({**files, "manifest.sig": b"no hexadecimal"}))
    assert check_pack(out).signature == "invalid"
    out.write_bytes(zip_files({**files, "key.pem": b"no key"}))
    assert check_pack(out).signature == "invalid"


def test_a_key_of_another_kind_is_one_line(
    record: AuditRecord, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    run, out, wrong = run_of(record, tmp_path), tmp_path / "pack.zip", tmp_path / "ec.pem"
    wrong.write_bytes(_pem(ec.generate_private_key(ec.SECP256R1())))
    for key in (wrong, keys[1], tmp_path / "none.pem"):
        done = evidence(run, "-o", out, "--sign", key)
        assert done.exit_code == ExitCode.USAGE
        assert done.stderr.count("\n") == 1
    evidence(run, "-o", out, "--sign", keys[0])
    done = evidence("verify", out, "--key", keys[0])
    assert "is no Ed25519 public key in PEM" in done.stderr


def test_without_the_extra_the_message_says_what_to_install(
    record: AuditRecord,
    tmp_path: Path,
    keys: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = builtins.__import__

    def refuse(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return own(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    done = evidence(run_of(record, tmp_path), "-o", tmp_path / "p.zip", "--sign", keys[0])
    assert done.exit_code == ExitCode.USAGE
    assert "pip install '.[evidence]'" in done.stderr
