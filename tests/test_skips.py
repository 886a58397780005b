"""A test that is skipped for a reason that nobody declared fails."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")


@pytest.fixture
def inner(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder of tests with the conftest file of this one."""
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    return pytester


@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.ci)])
def test_undeclared_skips_fail_the_session(inner: pytest.Pytester, workers: str) -> None:
    inner.makepyfile(
        """
        import pytest

        def test_called():
            pytest.skip("no data at hand")

        @pytest.mark.skip(reason="later")
        def test_marked():
            pass

        @pytest.mark.skipif(True, reason="needs /proc, or so")
        def test_alike():
            pass

        def test_declared():
            pytest.skip("needs /proc")

        @pytest.mark.xfail(strict=True, raises=ZeroDivisionError)
        def test_known_to_fail():
            1 / 0
        """
    )
    done = inner.runpytest_inprocess("-n", workers, "-p", "no:cacheprovider")
    done.assert_outcomes(failed=1, errors=2, skipped=1, xfailed=1)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["*skipped without being declared in tests/conftest.py: later*"])


def test_a_module_that_is_skipped_as_a_whole_fails_the_session(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        """
        import pytest

        pytest.importorskip("no_such_library")

        def test_never_run():
            pass
        """
    )
    done = inner.runpytest_inprocess("-p", "no:cacheprovider")
    done.assert_outcomes(errors=1)
    assert done.ret == pytest.ExitCode.INTERRUPTED
    done.stdout.fnmatch_lines(["*skipped without being declared*no_such_library*"])


def test_declared_skips_pass(inner: pytest.Pytester) -> None:
    inner.makepyfile("import pytest\n\ndef test_declared():\n    pytest.skip('needs /proc')\n")
    done = inner.runpytest_inprocess("-p", "no:cacheprovider")
    done.assert_outcomes(skipped=1)
    assert done.ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("arguments", "side_by_side"),
    [
        pytest.param([], True, marks=pytest.mark.ci),
        pytest.param(["."], True, marks=pytest.mark.ci),
        (["test_one.py"], False),
        (["test_one.py::test_one"], False),
    ],
)
def test_single_files_need_no_workers(
    inner: pytest.Pytester, arguments: list[str], side_by_side: bool
) -> None:
    inner.makepyfile(test_one="def test_one():\n    pass\n")
    words = ["-n", "auto", "--maxprocesses", "2", "-p", "no:cacheprovider", *arguments]
    done = inner.runpytest_inprocess(*words)
    done.assert_outcomes(passed=1)
    assert ("workers [1 item]" in done.stdout.str()) is side_by_side
