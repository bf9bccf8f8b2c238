"""A table of every way out of the product: each file that a run has, each command that shows one.

A writer or a command without a row fails `test_every_writer_has_a_row`: whoever adds one says here
what comes out of it, or why nothing of others can.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from steelyard.cli.main import COMMANDS
from steelyard.components.steps import Step
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.results.files import OF_SETS, WritePoint
from steelyard.results.step_log import StepLog
from tests.security.echoing import echoing
from tests.security.planted import SECRETS, found_below, found_in, said_in_every_form
from tests.security.test_canary import orchestration, run

pytestmark = pytest.mark.integration
P = WritePoint

FILES: Final[Mapping[str, tuple[WritePoint, ...]]] = {
    "lock": (P.LOCK_CREATED, P.LOCK_WRITTEN),
    "run.json": (P.RUN_DOCUMENT_WRITTEN, P.RUN_DOCUMENT_SYNCED, P.RUN_DOCUMENT_RENAMED),
    "attempts.jsonl": (P.JOURNAL_CREATED, P.ATTEMPTS_APPENDED, P.ATTEMPTS_SYNCED),
    "events.jsonl": (P.EVENTS_APPENDED, P.EVENTS_SYNCED),
    "progress.json": (P.PROGRESS_WRITTEN, P.PROGRESS_RENAMED),
    "metrics.json": (P.METRICS_WRITTEN, P.METRICS_RENAMED),
    "summary.md": (P.SUMMARY_WRITTEN, P.SUMMARY_RENAMED),
    "analysis.json": (P.ANALYSIS_WRITTEN, P.ANALYSIS_RENAMED),
    "analysis.md": (P.ANALYSIS_TEXT_WRITTEN, P.ANALYSIS_TEXT_RENAMED),
    "tasks/t0/attempt-1/trajectory.json": (P.ATTEMPT_FILE_WRITTEN, P.ATTEMPT_FILE_RENAMED),
    "run.log": (),
}
"""Each file of a run, and the named writes that make it; `run.log` is the logging module's."""

NOTHING_OF_OTHERS: Final[Mapping[WritePoint, str]] = {
    P.RUN_FOLDER_MADE: "a folder, its name made of the request's",
    P.RUN_FOLDER_SYNCED: "writes nothing",
    P.TAIL_CUT: "removes bytes",
    P.ATTEMPT_FOLDER_MADE: "a folder, its name made of the task's id",
    P.STEP_LOG_REMOVED: "removes a file",
    P.STEP_LOG_CREATED: "see test_the_log_of_steps",
    P.STEPS_APPENDED: "see test_the_log_of_steps",
}
UNCHANGED: Final[Mapping[str, str]] = {
    "inputs_collected": "what agents leave is flagged, never rewritten: tests/engine",
    "artifacts_collected": "what agents leave is flagged, never rewritten: tests/engine",
    "checkpoint_written": "the scoring inputs of the record: tests/engine/test_modes.py",
    "checkpoint_synced": "as above",
    "checkpoint_renamed": "as above",
}
"""Writes of collected files, by their names; who collects tests that they are flagged."""

SHOWS_A_RUN: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "summary": (("RUN",), ("RUN", "--json"), ("RUN", "--junit", "out.xml", "--markdown", "out.md")),
    "analysis": (("RUN", "--analyzer", "failures"), ("RUN", "--analyzer", "failures", "--json")),
    "show": (("RUN",), ("RUN", "t0"), ("RUN", "--json", "t0")),
    "compare": (
        ("RUN", "RUN"),
        ("TWIN", "RUN"),
        ("TWIN", "RUN", "--json"),
        ("TWIN", "RUN", "--junit", "out.xml", "--markdown", "out.md"),
    ),
    "explain-reuse": (("RUN", "--with", "o.json"),),
    "du": ((), ("--json",)),
    "env": (("list",), ("list", "--json")),
    "prune": (("--keep-last", "1", "--json"),),
    "upgrade": (("results", "--json"),),
    "config": (("show", "o.json"), ("show", "o.json", "--json"), ("check", "o.json")),
    "doctor": (("--json",),),
    "launch": (("o.json", "--dry-run", "--json"),),
}
ELSEWHERE: Final[Mapping[str, str]] = {
    "run": "the same code as launch",
    "evalset": "tests/security/test_sets_exit.py",
    "deployment": "tests/security/test_sets_exit.py",
    "ctl": "tests/engine/test_control_socket.py",
    "init": "reads no settings",
    "agent": "reads no settings",
    "list": "reads no settings",
    "pack": "has no keys but a judge's: tests/benchmarks/test_judge_settings.py",
    "schema": "made of our own models",
    "mock-model": "is the endpoint: tests/security/test_mock_server.py",
}


@dataclass(frozen=True)
class Leaked:
    """Three launches that let slip all that they know, in `folder/<mode>`."""

    folder: Path
    said: Mapping[str, str]
    """What each said on both streams."""

    def root(self, mode: str) -> Path:
        (found,) = (self.folder / mode / "results/leaks").iterdir()
        return found


MODES: Final[Mapping[str, tuple[str, ...]]] = {
    "log": ("--progress", "plain", "--log-level", "DEBUG"),
    "raise": ("--log-format", "json", "--file-log-format", "json", "--log-level", "DEBUG"),
    "model": ("--progress", "none", "--json"),
}


@pytest.fixture(scope="module")
def leaked(tmp_path_factory: pytest.TempPathFactory) -> Leaked:
    folder = tmp_path_factory.mktemp("leaked")
    said = {}
    with echoing() as port:
        for mode, arguments in MODES.items():
            (folder / mode).mkdir()
            document = orchestration(port, mode)
            ended = run(folder / mode, "launch", "o.json", *arguments, document=document)
            said[mode] = ended.stdout + ended.stderr
    return Leaked(folder, said)


def test_every_writer_has_a_row() -> None:
    """A new file or command says here what comes out of it."""
    named = {point for points in FILES.values() for point in points} | set(NOTHING_OF_OTHERS)
    named |= OF_SETS  # tests/security/test_sets_exit.py looks at the files of sets
    assert {p for p in WritePoint if p not in named and p.value not in UNCHANGED} == set()
    assert set(COMMANDS) - set(SHOWS_A_RUN) - set(ELSEWHERE) == set()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FILES)
def test_no_file_of_a_run_holds_a_secret(leaked: Leaked, mode: str, name: str) -> None:
    data = (leaked.root(mode) / name).read_bytes()
    assert data
    assert found_in(data) == []


@pytest.mark.parametrize("mode", MODES)
def test_no_stream_of_a_launch_holds_a_secret(leaked: Leaked, mode: str) -> None:
    assert leaked.said[mode]
    assert found_in(leaked.said[mode]) == []


@pytest.mark.parametrize("mode", ["log", "raise"])
def test_the_logs_did_get_what_was_said(leaked: Leaked, mode: str) -> None:
    for text in (leaked.said[mode], (leaked.root(mode) / "run.log").read_text()):
        assert text.count("[redacted]") > 20


def test_lines_of_a_json_log_are_json_whatever_is_redacted(leaked: Leaked) -> None:
    lines = (leaked.root("raise") / "run.log").read_text().split("\n")[:-1]
    entries = [json.loads(line) for line in lines]
    assert any("exception" in entry for entry in entries)
    assert {entry["schema"] for entry in entries} == {"log/1"}


TELLS_WORDS: Final = ("summary", "analysis", "show")
"""What these show depends on what was said; of the others one launch is enough."""
ENOUGH: Final = {"compare": "log"}
"""Which launch, where it is not the one in which all fails: a comparison needs scores."""
COMMAND_LINES: Final = {
    f"{mode}: {' '.join((command, *row))}": (mode, command, row)
    for command, rows in SHOWS_A_RUN.items()
    for row in rows
    for mode in (MODES if command in TELLS_WORDS else (ENOUGH.get(command, "raise"),))
}


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_no_command_shows_a_secret(leaked: Leaked, line: str, tmp_path: Path) -> None:
    mode, command, arguments = COMMAND_LINES[line]
    shutil.copytree(leaked.folder / mode, tmp_path / "copy")
    (root,) = (tmp_path / "copy/results/leaks").iterdir()
    places = {"RUN": str(root)}
    if "TWIN" in arguments:
        places["TWIN"] = str(shutil.copytree(root, root.with_name("twin")))
    ended = run(tmp_path / "copy", command, *(places.get(one, one) for one in arguments))
    assert "Traceback" not in ended.stderr
    assert "TWIN" not in arguments or ended.returncode == 0, ended.stderr
    assert ended.stdout or ended.stderr
    assert found_in(ended.stdout + ended.stderr) == []
    for name in ("out.xml", "out.md"):
        if name in arguments:
            assert found_in((tmp_path / "copy" / name).read_bytes()) == []


def test_what_retries_and_calibrations_write_holds_no_secret(tmp_path: Path) -> None:
    """`execution.json`, the trajectory beside it, `calibration.json`, and both reports."""
    more = ("--max-retries", "1", "--calibrate", "--junit", "out.xml", "--markdown", "out.md")
    with echoing() as port:
        ended = run(tmp_path, "launch", "o.json", *more, document=orchestration(port, "raise"))
    names = {path.name for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert {"execution.json", "calibration.json", "trajectory.json"} <= names
    assert found_below(tmp_path / "results") == []
    assert found_in(ended.stdout + ended.stderr) == []
    for name in ("out.xml", "out.md"):
        assert found_in((tmp_path / name).read_bytes()) == []


def test_the_log_of_steps(tmp_path: Path) -> None:
    store = SecretStore({})
    for name, secret in SECRETS.items():
        store.put(name, secret)
    log = StepLog(tmp_path, "tasks/t/attempt-1", redact=Redactor(store).raw)
    said = said_in_every_form()
    log.append(Step("agent", said, {said: [said]}, reasoning=said))
    log.close()
    data = (tmp_path / "tasks/t/attempt-1/trajectory.jsonl").read_bytes()
    assert b"[redacted]" in data
    assert found_in(data) == []


SDK: Final = """
import json, steelyard as sy
result = sy.launch(json.load(open("o.json")))
run = result["leaks"]
print(result._repr_html_(), run._repr_html_(), run.metrics, repr(result), repr(run))
print(run.to_pandas().to_json(), run.to_pandas().to_csv(), run.to_polars().write_json())
for attempt in run.attempts():
    print(attempt.answer, attempt.issues, attempt.details, run.trajectory(attempt))
"""


def test_what_a_notebook_shows_holds_no_secret(tmp_path: Path) -> None:
    import os

    from tests.security.test_canary import ROOT

    variables = {"VARIABLE_KEY": SECRETS["api_key_variable"], "LISTED": SECRETS["secret_env"]}
    with echoing() as port:
        document = orchestration(port, "model")
        document["requests"][0]["harness"]["layer_key"] = SECRETS["config_layer"]
        (tmp_path / "o.json").write_text(json.dumps(document))
        ended = subprocess.run(
            [sys.executable, "-c", SDK],
            cwd=tmp_path,
            env=os.environ | variables | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    assert "[redacted]" in ended.stdout
    assert found_in(ended.stdout + ended.stderr) == []
