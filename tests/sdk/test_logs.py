"""The product's loggers during a launch, seen by a script that has loggers of its own."""

from __future__ import annotations

import io
import logging
import sys
import threading
import warnings
from contextlib import ExitStack
from pathlib import Path

import pytest

import steelyard as sy
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.engine.run_log import run_logs
from steelyard.sdk.logs import logging_for
from tests.sdk.parts import Say, Sums

LOGGER = logging.getLogger("steelyard")


def _redactor(secret: str) -> Redactor:
    store = SecretStore({})
    store.put("config:x", secret)
    return Redactor(store)


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A script that called `logging.basicConfig(level=INFO)`."""
    found = io.StringIO()
    handler = logging.StreamHandler(found)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    monkeypatch.setattr(logging.getLogger(), "level", logging.INFO)
    logging.getLogger("steelyard").manager._clear_cache()  # type: ignore[attr-defined]
    return found


def test_the_caller_sees_what_their_level_lets_through(stream: io.StringIO) -> None:
    with logging_for(_redactor("a-secret-word")):
        LOGGER.debug("not asked for")
        logging.getLogger("steelyard.engine").info("with a-secret-word in it")
    assert stream.getvalue() == "with [redacted] in it\n"


def test_loggers_are_as_they_were_afterwards() -> None:
    before = (LOGGER.level, LOGGER.propagate, list(LOGGER.handlers))
    sy.run(Sums, Say)
    assert (LOGGER.level, LOGGER.propagate, list(LOGGER.handlers)) == before


def test_launches_that_overlap_leave_nothing_behind(stream: io.StringIO) -> None:
    before = (LOGGER.level, LOGGER.propagate, list(LOGGER.handlers))
    first, second = logging_for(_redactor("first-secret")), logging_for(_redactor("second-secret"))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    LOGGER.warning("second-secret")
    second.__exit__(None, None, None)
    assert (LOGGER.level, LOGGER.propagate, list(LOGGER.handlers)) == before
    assert stream.getvalue() == "[redacted]\n"


def test_without_handlers_a_run_writes_nothing_to_the_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    run = sy.run(Sums, Say(Say.Params(text="crash")))
    assert run.outcome is sy.RunOutcome.FAILED
    assert capfd.readouterr() == ("", "")
    assert "the harness fell over" in (run.run_dir / "run.log").read_text()


def test_hooks_of_warnings_and_threads_are_put_back_whatever_overlaps() -> None:
    before = (warnings.showwarning, threading.excepthook, sys.unraisablehook)

    def work(sleep_s: float) -> None:
        sy.run(Sums, Say(Say.Params(sleep_s=sleep_s)), run_name=str(sleep_s))

    runs = [threading.Thread(target=work, args=(s,)) for s in (0.05, 0.2, 0.1)]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    assert (warnings.showwarning, threading.excepthook, sys.unraisablehook) == before


def test_a_log_of_one_launch_holds_no_secret_of_another(tmp_path: Path) -> None:
    paths = [tmp_path / "a.log", tmp_path / "b.log"]
    with logging_for(_redactor("first-secret")), ExitStack() as logs:
        for path, secret in zip(paths, ("first-secret", "second-secret"), strict=True):
            logs.enter_context(run_logs([("r", path)], "DEBUG", _redactor(secret)))
        LOGGER.info("of no run: first-secret and second-secret")
    for path in paths:
        assert path.read_text().endswith("of no run: [redacted] and [redacted]\n")
