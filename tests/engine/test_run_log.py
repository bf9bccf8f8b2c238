"""`run.log` is cut into pieces, and its level is its own."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.engine import run_log
from steelyard.engine.log_context import current_execution
from steelyard.engine.run_log import current_run, listening, run_logs
from tests.engine.launching import request, run_all

LOG = logging.getLogger("steelyard.test_run_log")
HERE = Path(__file__)


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


CONTEXT = re.compile(r" run=(\S+) request=(\S+)(?: task=(\S+) attempt=(\d+) execution=(\d+))?: ")


def _entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def test_each_entry_of_an_execution_says_whose_it_is(tmp_path: Path) -> None:
    spoken = {"id": f"{HERE}:Speaking"}
    result = run_all(
        tmp_path,
        request("a", benchmark={"tasks": 3}, harness=spoken, execution={"attempts": {"k": 2}}),
        request("b", benchmark={"tasks": 2}, harness=spoken),
        task_concurrency=4,
    )
    for run, wanted in zip(result.requests, (6, 2), strict=True):
        said = []
        for line in (run.run_dir / "run.log").read_text().splitlines():
            found = CONTEXT.search(line)
            assert found is not None, line
            assert found.groups()[:2] == (run.run_dir.name, run.name)
            if "I am" in line:
                assert line.endswith(f"I am {found[3]} {found[4]}"), line
                assert found[5] == "1"
                said.append((found[3], found[4]))
        assert len(said) == wanted * 2  # from the loop, and from a thread


def test_what_a_request_says_at_its_end_is_of_no_execution(tmp_path: Path) -> None:
    result = run_all(
        tmp_path,
        request("a", harness={"id": f"{HERE}:Speaking"}, execution={"analysis": True}),
        runtime={"file_log_format": "json"},
    )
    (end,) = [
        entry
        for entry in _entries(result.requests[0].run_dir / "run.log")
        if entry["logger"] == "steelyard.engine.analysis"
    ]
    assert (end["request"], end["task"], end["attempt"]) == ("a", None, None)


def test_a_json_log_is_one_object_a_line(tmp_path: Path) -> None:
    with run_logs([("r", tmp_path / "id/run.log")], "DEBUG", _redactor(), "json"):
        (tmp_path / "id").mkdir()
        LOG.warning("two\nlines %s \x1b[31m\u2028", "and more")
        try:
            raise ValueError("as asked")
        except ValueError:
            LOG.exception("failed")
        logging.getLogger("another.library").error("theirs")
    first, second, third = _entries(tmp_path / "id/run.log")
    assert list(first) == [
        "schema", "at", "level", "logger", "run", "request", "task", "attempt", "execution",
        "message",
    ]  # fmt: skip
    assert first["message"] == "two\nlines and more \x1b[31m\u2028"
    assert (first["schema"], first["run"], first["level"]) == ("log/1", "id", "WARNING")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["at"])
    assert second["exception"].endswith("ValueError: as asked")
    assert third["logger"] == "another.library"
    assert "\x1b" not in (tmp_path / "id/run.log").read_text()


@pytest.mark.parametrize("name", ["a b", 'q"uote', "new\nline: x", "k=v", "é", "\x1b[2J"])
def test_no_task_id_can_pass_for_another_part_of_an_entry(name: str, tmp_path: Path) -> None:
    (tmp_path / "id").mkdir()
    with run_logs([("r", tmp_path / "id/run.log")], "DEBUG", _redactor()):
        token = current_execution.set(_execution(name))
        LOG.info("words")
        current_execution.reset(token)
    (line,) = (tmp_path / "id/run.log").read_text().split("\n")[:-1]
    assert line.endswith(" attempt=1 execution=2: words")
    assert f" task={name if name == 'é' else json.dumps(name, ensure_ascii=False)}" in line


def _execution(name: str) -> Any:
    return SimpleNamespace(task=SimpleNamespace(id=name), attempt=1, execution=2)


class Speaking(Harness):
    """Says in the log who it is, from the loop and from a thread."""

    api = 1
    id = "speaking"
    traits = HarnessTraits(calls_model=False)

    async def run(self, context: HarnessContext) -> HarnessResult:
        who = f"I am {context.task_id} {context.attempt}"
        await asyncio.sleep(0.01)
        LOG.info(who)
        await asyncio.to_thread(LOG.info, who)
        return HarnessResult("right")
