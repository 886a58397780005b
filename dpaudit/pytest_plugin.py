"""pytest plugin: the fixture `dp_audit`, the marker `dpaudit`, the options `--dpaudit-...`.

Loaded in every pytest session of an environment that has dpaudit, so it imports neither torch nor
pandas; the fixture does when a test calls it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from dpaudit.errors import InputError
from dpaudit.files import MOST_OF_SUMMARY, append_to_step_summary
from dpaudit.formatting import counted, error_text, printable, rounded, rounded_down
from dpaudit.results.baseline import (
    LEVEL,
    UPDATE,
    AuditOfTest,
    Baseline,
    Ranking,
    baseline_of,
    regression,
    write_baseline,
)

if TYPE_CHECKING:
    import pandas as pd

    from dpaudit.auditing.recall import Memory
    from dpaudit.mechanisms.run import MechanismResult
    from dpaudit.model.linked_files import Given
    from dpaudit.replaying.record import ReplayRecord
    from dpaudit.results.result import AuditResult
    from dpaudit.searching.record import SearchRecord

    DpAudit = Callable[..., AuditResult]

SCALES: Final = {"smoke": 52, "ci": 100, "full": 400}
"""Default numbers of shadow models by scale: seconds, a minute or two, and more."""
PROPERTY: Final = "dpaudit"
"""Test property that holds an audit as JSON: for JUnit XML, and on its way from xdist's workers."""
REPLAYED: Final = "dpaudit-replay"
"""Test property of a replay, alone or before an audit: its verdict in a line."""
REPLAYED_SCALES: Final = ("ci", "full")
"""At these scales a replay precedes an audit of Python code without a number of models."""
REPLAY_SHARE: Final = 5.0
"""A replay errs with a fifth of the error probability of the audit that it precedes."""
SHARED: Final = "dpaudit-false-alarms"
"""Test property of a check with a share of the false alarms: the share and the number of tests."""
ORDER: Final = ("violation", "invalid", "inconclusive", "measured", "consistent")
"""Verdicts in the order in which a summary lists them."""
SKIPPED: Final = "dpaudit-skipped"
"""Test property of an audit that was skipped: why, and how to run it."""
_SKIP = "skip tests that audit privacy (a fixture dp_audit or dp_replay, or the marker dpaudit)"
_ONLY = "run only tests that audit privacy"
_SLOW = "run audits marked slow outside continuous integration (where CI is not set), too"
_SCALE = "shadow models of audits that name no number: smoke 52, ci 100 (the default), full 400"
_BASELINE = "fail where the attack of an audit does better than this file says it did before"
_UPDATE = "write what audits find into the baseline, and fail none for it"
_NO_CACHE = "train again what nothing has changed since it was audited"
_CACHE = "keep results in pytest's cache, and train only what has changed since (true)"
_FALSE_ALARMS = (
    "probability that a session fails although every generator keeps its claim; split over its "
    "tests (default: each test has the error probability of its confidence)"
)
_LEVEL = f"level of the test that compares an audit with the baseline ({LEVEL:g})"

_TESTS: Final = pytest.StashKey[int]()
"""How many tests of a session audit; in its configuration."""
_CHECKS: Final = pytest.StashKey[int]()
"""How many checks a test has begun; in the test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Registers the options and their ini twins."""
    group = parser.getgroup("dpaudit", "privacy audits")
    parser.addini("dpaudit_cache", type="bool", default=True, help=_CACHE)
    for name, help_text in (("skip", _SKIP), ("only", _ONLY), ("slow", _SLOW)):
        group.addoption(f"--dpaudit-{name}", action="store_true", default=None, help=help_text)
        parser.addini(f"dpaudit_{name}", type="bool", default=False, help=help_text)
    group.addoption("--dpaudit-scale", choices=list(SCALES), default=None, help=_SCALE)
    group.addoption("--dpaudit-baseline", metavar="FILE", default=None, help=_BASELINE)
    group.addoption("--dpaudit-baseline-update", action="store_true", help=_UPDATE)
    group.addoption("--dpaudit-no-cache", action="store_true", help=_NO_CACHE)
    parser.addini("dpaudit_false_alarms", default="", help=_FALSE_ALARMS)
    parser.addini("dpaudit_scale", default="ci", help=_SCALE)
    parser.addini("dpaudit_baseline", default="", help=_BASELINE)
    parser.addini("dpaudit_baseline_level", default=str(LEVEL), help=_LEVEL)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker and checks the options.

    Raises:
        pytest.UsageError: If an option or its ini twin has no meaning.
    """
    config.addinivalue_line(
        "markers",
        "dpaudit(*, slow=False, **settings): a privacy audit; settings are defaults of dp_audit in "
        "this test, and a slow one is skipped outside continuous integration",
    )
    if _option(config, "scale") not in SCALES:
        raise pytest.UsageError(f"dpaudit_scale must be one of {', '.join(SCALES)}")
    _level(config)
    _false_alarms(config)
    if config.getoption("--dpaudit-baseline-update") and _baseline(config) is None:
        raise pytest.UsageError("--dpaudit-baseline-update needs --dpaudit-baseline FILE")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects tests without an audit if only audits were requested."""
    if not _option(config, "only"):
        return
    others = [item for item in items if not _is_audit(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if _is_audit(item)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Counts the tests that audit, which share the false alarms."""
    session.config.stash[_TESTS] = sum(map(_is_audit, session.items))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips audits on request, and those marked slow outside CI.

    Raises:
        pytest.UsageError: If the marker was given what no audit takes.
    """
    __tracebackhide__ = True
    if _is_audit(item) and _option(item.config, "skip"):
        _skip(item, "by dpaudit_skip")
    _, slow = _marker(item)
    if slow and not _runs_slow(item.config):
        _skip(item, "marked slow, run in CI or by --dpaudit-slow")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Lists what the audits found and which were skipped; writes the baseline if asked to.

    Raises:
        pytest.UsageError: If the baseline cannot be written.
    """
    if hasattr(config, "workerinput"):
        return  # a worker of xdist: its controller has the audits of all workers
    audits = [_read(json.loads(text)) for _, text in _properties(terminalreporter, PROPERTY)]
    replays = list(_properties(terminalreporter, REPLAYED))
    skipped = Counter(
        value
        for report in terminalreporter.stats.get("skipped", ())
        for name, value in report.user_properties
        if name == SKIPPED
    )
    allowed = [share for _, share in _properties(terminalreporter, SHARED)][:1]
    if not audits and not replays and not skipped and not allowed:
        return
    terminalreporter.section("privacy audits")
    for audit in audits:
        terminalreporter.line(_line(audit))
    for test, outcome in replays:
        terminalreporter.line(f"REPLAY of {test}: {outcome}")
    left_out = [f"{counted(count, 'privacy audit')}, {why}" for why, count in skipped.items()]
    for reason in left_out:
        terminalreporter.line(f"NOT RUN: {reason}")
    for share in allowed:
        terminalreporter.line(f"FALSE ALARMS: {share}; above is what each audit still detects")
    if reason := append_to_step_summary(_markdown(audits, replays, left_out)):
        terminalreporter.line(reason)
    file = _baseline(config)
    if file is not None and config.getoption("--dpaudit-baseline-update"):
        try:
            write_baseline(file, audits)
        except InputError as error:
            raise pytest.UsageError(str(error)) from None
        terminalreporter.line(f"baseline written: {file}")


def _markdown(
    audits: Sequence[AuditOfTest], replays: Sequence[tuple[str, str]], left_out: Sequence[str]
) -> str:
    """The audits of a session as a table in Markdown, of which as much as GitHub shows."""
    by_severity = sorted(audits, key=lambda audit: ORDER.index(audit.verdict))
    rows = [
        f"| **{audit.verdict}** | {_cell(audit.key)} | {_number(audit.claimed, 'none')} | "
        f"{_number(audit.proved, 'nothing', rounded_down)} | "
        f"{_cell(audit.detects.removeprefix('detects '))} |\n"
        for audit in by_severity
    ]
    others = [f"- Replay of {_cell(test)}: {_cell(outcome)}\n" for test, outcome in replays]
    others += [f"- Not run: {_cell(reason)}\n" for reason in left_out]
    head = "### Privacy audits\n\n"
    title = "| verdict | test | claimed | proved | detects |\n|---|---|---|---|---|\n"
    lines = [*([title, *rows, "\n"] if rows else []), *others]
    kept, size = [head], len(head) + 100
    for number, line in enumerate(lines):
        size += len(line.encode())
        if size > MOST_OF_SUMMARY:
            kept.append(f"\nand {len(lines) - number} more lines\n")
            break
        kept.append(line)
    return "".join([*kept, "\n"])


def _number(value: float | None, missing: str, write: Callable[[float], str] = rounded) -> str:
    return missing if value is None else write(value)


def _cell(text: str) -> str:
    """A foreign text in a cell of a table: it neither ends the cell nor is markup."""
    return re.sub(r"([\\`*_{}\[\]<>&|#@~!])", r"\\\1", printable(text))


def _line(audit: AuditOfTest) -> str:
    """An audit in one line, with what it could have detected."""
    claimed, proved = _number(audit.claimed, "none"), _number(audit.proved, "nothing", rounded_down)
    parts = filter(None, [f"{audit.quantity} claimed {claimed}", f"proved {proved}", audit.detects])
    kept = f" (not kept in the cache: {audit.unkept})" if audit.unkept else ""
    return (
        f"{audit.verdict.upper()} {audit.key}: {', '.join(parts)}; "
        f"{audit.report}{' (from the cache)' if audit.cached else kept}"
    )


@pytest.fixture
def dp_audit(request: pytest.FixtureRequest, tmp_path: Path) -> DpAudit:
    """Audits a generator inside a test.

    Returns a function that takes a generator, a table, `schema` and further settings as plain
    keywords (`dpaudit.auditing.games.audit_settings`). The number of shadow models depends on
    `--dpaudit-scale` unless the test or its marker sets it; the result has `assert_no_violation()`.
    At the scales ci and full, Python code is replayed first (`dpaudit.replay`). A violation, also
    of a proof that the generator states, fails the test before any shadow model is trained;
    `replay=False` turns this off. The report of each audit stays in
    the test's temporary folder. An audit is not run again if nothing relevant has changed
    (`dpaudit.auditing.recall`).
    """
    config, node = request.config, request.node
    folders: list[Path] = []

    def audit(
        generator: object,
        data: pd.DataFrame | str | Path | None = None,
        replay: bool = True,
        **options: Any,
    ) -> AuditResult:
        __tracebackhide__ = True
        from dpaudit.auditing.games import keywords_of_game
        from dpaudit.auditing.recall import audit_or_recall

        number = len(folders) + 1
        before = _before(config, AuditOfTest.key_of(node.nodeid, number))
        share, level = _share(node), _level(config)
        _check_names(options, f"{node.nodeid}: dp_audit")
        marked, _ = _marker(node)
        given: dict[str, Any] = {**marked, **options}
        folders.append(tmp_path / f"dpaudit-{number}")
        if "PYTEST_XDIST_WORKER" in os.environ and given.get("engine") != "dask":
            given.setdefault("jobs", 1)  # xdist already keeps every core busy
        scale = _option(config, "scale")
        sized = "effort" not in given and "shadow_models" in keywords_of_game(given)
        unsized = sized and "shadow_models" not in given
        replayed = replay and unsized and scale in REPLAYED_SCALES
        if share is not None:
            if before is not None:  # half is for the comparison with the baseline
                share /= 2.0
                level = min(level, share)
            _limit_error(given, share / (1.0 + 1.0 / REPLAY_SHARE) if replayed else share)

        def first() -> None:
            __tracebackhide__ = True
            if replayed:
                _replay_first(node, generator, data, given)

        if sized:
            given = {"shadow_models": SCALES[scale]} | given
        memory = _memory(config, node, f"{node.nodeid} #{number}")
        try:
            result, cached, unkept = audit_or_recall(
                generator, data, given, out=folders[-1], memory=memory, first=first
            )
        except InputError as error:  # the caller's mistake: where it was found says nothing
            raise error.with_traceback(None) from None
        entry = _audit_of_test(node.nodeid, number, result)._replace(cached=cached, unkept=unkept)
        node.user_properties.append((PROPERTY, json.dumps(entry._asdict())))
        regressed = before and regression(entry, before, level=level)
        if regressed:
            pytest.fail(f"{regressed}\n{result.failure_message()}", pytrace=False)
        return result

    return audit


@pytest.fixture
def dp_replay(request: pytest.FixtureRequest) -> Callable[..., ReplayRecord]:
    """Replays a generator in a test: `dpaudit.replay`; its record has `assert_no_violation()`.

    It says what the code spends, line by line, and detects leaks that an audit of as many fits
    cannot. If the call names no `samplers`, those of the project's file are used
    (`dpaudit.auditing.configuration`).
    """

    def replayed(*given: Any, **settings: Any) -> ReplayRecord:
        __tracebackhide__ = True
        from dpaudit.replaying.run import replay

        settings.setdefault("samplers", _samplers(request.config))
        _limit_error(settings, _share(request.node))
        try:
            record = replay(*given, **settings)
        except InputError as error:  # as in `dp_audit`
            raise error.with_traceback(None) from None
        request.node.user_properties.append((REPLAYED, record.headline))
        return record

    return replayed


@pytest.fixture
def dp_search(request: pytest.FixtureRequest) -> Callable[..., SearchRecord]:
    """Searches in a test for pairs of tables that break a claim: `dpaudit.search`.

    Its record has `assert_no_violation()`. Examples that a search kept in pytest's cache are the
    first that the next one tries. Samplers are those of `dp_replay`.
    """
    cache: pytest.Cache | None = getattr(request.config, "cache", None)

    def searched(*given: Any, **settings: Any) -> SearchRecord:
        __tracebackhide__ = True
        from dpaudit.searching.run import search

        settings.setdefault("samplers", _samplers(request.config))
        _limit_error(settings, _share(request.node))
        if cache is not None:
            name = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]
            settings.setdefault("out", cache.mkdir("dpaudit-search") / name)
        try:
            record = search(*given, **settings)
        except InputError as error:  # as in `dp_audit`
            raise error.with_traceback(None) from None
        request.node.user_properties.append((REPLAYED, record.headline))
        return record

    return searched


@pytest.fixture
def dp_mechanism(request: pytest.FixtureRequest) -> Callable[..., MechanismResult]:
    """Tests a plain mechanism: `dpaudit.mechanism`; its result has `assert_no_violation()`."""

    def tested(*given: Any, **settings: Any) -> MechanismResult:
        __tracebackhide__ = True
        from dpaudit.mechanisms.run import mechanism

        _limit_error(settings, _share(request.node))
        try:
            return mechanism(*given, **settings)
        except InputError as error:  # as in `dp_audit`
            raise error.with_traceback(None) from None

    return tested


def _replay_first(
    node: pytest.Item, generator: object, data: Given | None, given: Mapping[str, Any]
) -> None:
    """Fails a test whose generator violates its claim in a replay; records every other verdict.

    Its attacker sees the fitted model only where that of the audit sees one. Code that cannot be
    replayed, for example in other languages, is left to the audit.
    """
    __tracebackhide__ = True
    from dpaudit.auditing.recall import OF_THE_RUN
    from dpaudit.auditing.settings import AuditSettings
    from dpaudit.errors import RegistryError, ReplayError
    from dpaudit.model.choices import Access
    from dpaudit.replaying.run import replay
    from dpaudit.results.verdict import Verdict

    settings = {
        name: value for name, value in given.items() if name not in {*OF_THE_RUN, "on_progress"}
    }
    error = 1.0 - settings.get("confidence", AuditSettings.confidence)
    settings["confidence"] = 1.0 - error / REPLAY_SHARE
    named = getattr(settings.get("game"), "access", settings.get("access", Access.OUTPUT))
    settings["access"] = Access(named).of_replay
    samplers = _samplers(node.config)
    try:
        # guesses are left to the audit
        record = replay(generator, data, samplers=samplers, coins=False, **settings)
    except (RegistryError, ReplayError) as failure:
        node.user_properties.append((REPLAYED, f"not possible: {error_text(failure)}"))
        return
    node.user_properties.append((REPLAYED, record.headline))
    if record.verdict is Verdict.VIOLATION:
        pytest.fail(f"{record}\n(no shadow model was trained)", pytrace=False)


def _samplers(config: pytest.Config) -> list[dict[str, Any]]:
    """The samplers that the project's file names."""
    from dpaudit.auditing.configuration import configured_samplers, file_in_use

    file = file_in_use(None, config.rootpath)
    return [] if file is None else configured_samplers(file)


def _memory(config: pytest.Config, node: pytest.Item, name: str) -> Memory | None:
    """The cache of results; None if it is switched off, or pytest has no cache."""
    from dpaudit.auditing.recall import Memory

    cache: pytest.Cache | None = getattr(config, "cache", None)
    off = config.getoption("--dpaudit-no-cache") or not config.getini("dpaudit_cache")
    if cache is None or off:
        return None
    conftests = (folder / "conftest.py" for folder in node.path.parents)
    files = (node.path, *(file for file in conftests if file.is_file()))
    return Memory(folder=cache.mkdir("dpaudit"), name=name, files=files)


def _is_audit(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("dpaudit") is not None
    fixtures = {"dp_audit", "dp_replay", "dp_search", "dp_mechanism"}
    return marked or not fixtures.isdisjoint(getattr(item, "fixturenames", ()))


def _runs_slow(config: pytest.Config) -> bool:
    """Whether slow audits run: in CI, or if audits were explicitly requested."""
    asked = config.getoption("--dpaudit-only") or config.getoption("--dpaudit-scale")
    in_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    return in_ci or bool(asked) or _option(config, "slow")


def _skip(item: pytest.Item, why: str) -> NoReturn:
    item.user_properties.append((SKIPPED, why))
    pytest.skip(f"privacy audit {why}")


def _marker(item: pytest.Item) -> tuple[dict[str, Any], bool]:
    """The settings that markers give, those of the nearest first, and whether the audit is slow."""
    __tracebackhide__ = True
    given: dict[str, Any] = {}
    for marker in item.iter_markers("dpaudit"):
        if marker.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker dpaudit takes settings by name")
        given = {**marker.kwargs, **given}
    slow = bool(given.pop("slow", False))
    if given:
        _check_names(given, f"{item.nodeid}: the marker dpaudit")
    return given, slow


def _check_names(given: Iterable[str], whose: str) -> None:
    """Refuses what is no setting of an audit."""
    __tracebackhide__ = True
    from dpaudit.auditing.games import keywords
    from dpaudit.auditing.recall import OF_THE_RUN
    from dpaudit.formatting import did_you_mean

    known = [*keywords(), "schema", "on_progress", *sorted(OF_THE_RUN)]
    wrong = next((name for name in given if name not in known), None)
    if wrong is not None:
        raise pytest.UsageError(
            f"{whose} has {wrong!r}, which is no setting of an audit{did_you_mean(wrong, known)}"
        )


def _option(config: pytest.Config, name: str) -> Any:
    """An option, else its ini twin."""
    option = config.getoption(f"--dpaudit-{name}")
    return config.getini(f"dpaudit_{name}") if option is None else option


def _baseline(config: pytest.Config) -> Path | None:
    """The baseline file; one from the ini file is relative to that file."""
    option: str | None = config.getoption("--dpaudit-baseline")
    if option is not None:
        return config.invocation_params.dir / option
    ini: str = config.getini("dpaudit_baseline")
    return config.rootpath / ini if ini else None


def _level(config: pytest.Config) -> float:
    text = config.getini("dpaudit_baseline_level")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < 0.5:
        raise pytest.UsageError(f"dpaudit_baseline_level must be in (0, 0.5), got {text!r}")
    return value


def _false_alarms(config: pytest.Config) -> float | None:
    """The probability of a false alarm in a session; None if each test has its own."""
    text = config.getini("dpaudit_false_alarms")
    try:
        value = float(text) if text else None
    except ValueError:
        value = math.nan
    if value is not None and not 0.0 < value < 0.5:
        raise pytest.UsageError(f"dpaudit_false_alarms must be in (0, 0.5), got {text!r}")
    return value


def _share(node: pytest.Item) -> float | None:
    """The error probability of a test's next check; None if the session limits none.

    Tests have equal shares. The k-th check of a test has the 2^-k-th part of its share, because
    it is not known how many follow.

    Raises:
        pytest.UsageError: If the test was not counted, as it asked for its fixture while it ran.
    """
    __tracebackhide__ = True
    allowed = _false_alarms(node.config)
    if allowed is None:
        return None
    if not _is_audit(node):
        raise pytest.UsageError(
            f"{node.nodeid} has no share of dpaudit_false_alarms: mark it @pytest.mark.dpaudit"
        )
    number = node.stash[_CHECKS] = node.stash.get(_CHECKS, 0) + 1
    tests = node.config.stash[_TESTS]
    share = allowed / tests
    said = f"at most {allowed:g} in this session, {share:.2g} for each of {counted(tests, 'test')}"
    node.user_properties.append((SHARED, said))
    return share / 2.0**number


def _limit_error(settings: dict[str, Any], share: float | None) -> None:
    """Raises the confidence of a check to that of its share of the false alarms, if it has one."""
    if share is not None:
        settings["confidence"] = max(settings.get("confidence", 0.0), 1.0 - share)


def _before(config: pytest.Config, key: str) -> Baseline | None:
    """The baseline of an audit, read before any training; None if there is no comparison."""
    __tracebackhide__ = True
    file = _baseline(config)
    if file is None or config.getoption(UPDATE):
        return None
    try:
        return baseline_of(key, file)
    except InputError as error:
        raise pytest.UsageError(str(error)) from None


def _audit_of_test(test: str, number: int, result: AuditResult) -> AuditOfTest:
    from dpaudit.model.claim import NoClaim
    from dpaudit.results.phrases import detects_from, too_narrow
    from dpaudit.results.verdict import Verdict

    unclaimed = isinstance(result.claim, NoClaim)
    claimed = None if unclaimed else result.claim.value
    return AuditOfTest(
        test=test,
        number=number,
        verdict=str(result.verdict),
        quantity=str(result.claim.quantity),
        claimed=claimed,
        proved=result.proved,
        shadow_models=sum(result.shadow_models.values()),
        seed=result.seed,
        report=str(result.folder and result.folder / "report.html"),
        detects=""
        if unclaimed or result.power is None or result.verdict is Verdict.INVALID
        else "; ".join(
            filter(None, [say(result.power, result.claim) for say in (detects_from, too_narrow)])
        ),
        settings=_compared_settings(result),
        ranking=_ranking(result),
    )


def _ranking(result: AuditResult) -> Ranking | None:
    counts = result.counts
    if result.auc is None or counts is None or not result.game.has_fixed_independent_trials:
        return None
    return Ranking(result.auc, counts.n_in, counts.n_out)


def _compared_settings(result: AuditResult) -> dict[str, str]:
    """Everything that decides an attack's performance, except the generator."""
    from dpaudit.results.phrases import per_unit

    target = result.target
    row = "" if target.row is None else f" (row {target.row})"
    return {
        "game": result.game.name,
        "claim": f"{result.claim.in_words}{per_unit(result.claim)}, {result.claim.neighbours}",
        "table": f"{result.data.rows} rows, {result.data.columns} columns",
        "shadow models": str(sum(result.shadow_models.values())),
        "target": f"{target.choice}{row}",
        "attacks": ", ".join(sorted(result.tried_attacks)),
        "thresholds": str(result.threshold_rule),
        "seed": str(result.seed),
    }


def _properties(terminalreporter: Any, wanted: str) -> Iterator[tuple[str, str]]:
    """A property of all tests that ran, those of xdist's workers too, with the test."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "call":
                continue
            for name, value in report.user_properties:
                if name == wanted:
                    yield report.nodeid, value


def _read(document: dict[str, Any]) -> AuditOfTest:
    """An audit as it came from a test, perhaps of another process."""
    ranking = document.pop("ranking")
    return AuditOfTest(**document, ranking=ranking and Ranking(*ranking))
