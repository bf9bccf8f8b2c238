"""`run.log` is cut into pieces, and its level is its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.engine import run_log
from steelyard.engine.run_log import current_run, listening, run_logs
from tests.engine.launching import request, run_all

LOG = logging.getLogger("steelyard.test_run_log")


@pytest.fixture(autouse=True)
def every_level_is_on() -> Iterator[None]:
    """What the command line does: loggers pass everything, handlers choose."""
    ours = logging.getLogger("steelyard")
    before = ours.level
    ours.setLevel(logging.DEBUG)
    yield
    ours.setLevel(before)


def _redactor() -> Redactor:
    return Redactor(SecretStore())


def test_a_log_is_rotated_and_three_old_pieces_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "_MAX_BYTES", 1000)
    with run_logs([("r", tmp_path / "run.log")], "INFO", _redactor()):
        for number in range(100):
            LOG.info("line %03d %s", number, "x" * 100)
    pieces = sorted(tmp_path.iterdir())
    assert [piece.name for piece in pieces] == ["run.log", "run.log.1", "run.log.2", "run.log.3"]
    assert all(0 < piece.stat().st_size <= 1000 for piece in pieces)
    assert "line 099" in pieces[0].read_text()


def test_a_log_of_a_usual_size_is_one_file() -> None:
    assert run_log._MAX_BYTES == 16 * 1024 * 1024


@pytest.mark.parametrize(
    ("level", "kept"),
    [("DEBUG", ["debug", "info", "warning"]), ("WARNING", ["warning"])],
)
def test_the_files_level_is_not_the_consoles(level: str, kept: list[str], tmp_path: Path) -> None:
    shown: list[str] = []

    class Console(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            shown.append(record.getMessage())

    with (
        listening(Console(logging.INFO)),
        run_logs([("r", tmp_path / "run.log")], level, _redactor()),
    ):
        for word in ("debug", "info", "warning"):
            LOG.log(getattr(logging, word.upper()), word)
            logging.getLogger("another.library").log(getattr(logging, word.upper()), word)
    lines = (tmp_path / "run.log").read_text().splitlines()
    ours = [line for line in lines if LOG.name in line]
    assert [line.rpartition(": ")[2] for line in ours] == kept
    assert [word for word in shown if word == "debug"] == []
    assert shown.count("info") >= 1
    assert all(line.rpartition(": ")[2] in kept for line in lines)


def test_each_run_has_what_is_its_own_and_what_is_nobodys(tmp_path: Path) -> None:
    with run_logs([("a", tmp_path / "a.log"), ("b", tmp_path / "b.log")], "INFO", _redactor()):
        LOG.info("of all")
        token = current_run.set("a")
        LOG.info("of a")
        current_run.reset(token)
    words = [
        [line.rpartition(": ")[2] for line in (tmp_path / f"{name}.log").read_text().splitlines()]
        for name in "ab"
    ]
    assert words == [["of all", "of a"], ["of all"]]


def test_a_launch_writes_its_log_at_the_files_level(tmp_path: Path) -> None:
    for level, has_notes in (("INFO", True), ("ERROR", False)):
        folder = tmp_path / level.lower()
        folder.mkdir()
        result = run_all(
            folder, request(runtime={"reuse": True}), runtime={"file_log_level": level}
        )
        path = result.requests[0].run_dir / "run.log"
        assert (path.exists() and bool(path.read_text())) is has_notes
