"""Every failure is a short block with an exit status; a traceback only where asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli import errors, streams
from steelyard.cli import list as list_command
from steelyard.config.errors import Fault

Run = Callable[..., Any]


def test_an_unknown_command_offers_near_names(steelyard: Run) -> None:
    ran = steelyard("lanch", "x.yaml")
    assert (ran.status, ran.out) == (2, "")
    assert "no such command 'lanch'; did you mean launch?" in ran.err
    assert "commands: init, run, launch" in steelyard("qqq").err


def test_an_unknown_option_offers_near_names(steelyard: Run) -> None:
    ran = steelyard("launch", "x.yaml", "--task-concurency", "3")
    assert ran.status == 2
    assert "--task-concurrency" in ran.err
    assert "see `steelyard launch --help`" in ran.err


def test_an_unknown_option_of_a_section_names_the_field(steelyard: Run) -> None:
    ran = steelyard("run", "b", "chat", "m", "--model-max-request-retries", "3")
    assert ran.status == 2
    assert "-P model.max_request_retries=VALUE" in ran.err
    assert "Did you mean" not in ran.err


def test_without_a_command_the_help_is_printed_as_it_is(steelyard: Run) -> None:
    ran = steelyard()
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("Usage: steelyard [OPTIONS] COMMAND")
    assert "\n  --version   Print the version.\n" in ran.err
    assert "error" not in ran.err.splitlines()[0]


def test_a_missing_argument_is_named(steelyard: Run) -> None:
    ran = steelyard("run", "humaneval")
    assert ran.status == 2
    assert "HARNESS" in ran.err


def test_problems_are_one_json_document_on_standard_output(steelyard: Run, project: Path) -> None:
    (project / "o.yaml").write_text("version: 2\nrequests: []\n")
    ran = steelyard("launch", "o.yaml", "--dry-run", "--json")
    assert (ran.status, ran.err) == (2, "")
    error = ran.json["error"]
    assert (error["kind"], error["exit_status"]) == ("InvalidSettings", 2)
    first = error["problems"][0]
    assert (first["file"], first["line"], first["column"]) == ("o.yaml", 1, 10)
    assert (first["field"], first["remedy"]) == ("version", "expected one of: 1")


def test_usage_errors_are_json_too(steelyard: Run) -> None:
    ran = steelyard("launch", "--json")
    assert ran.status == 2
    assert ran.json["error"]["problems"][0]["message"]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    def install(error: BaseException) -> None:
        def fail(_kind: object) -> None:
            raise error

        monkeypatch.setattr(list_command, "known_components", fail)

    return install


def test_an_unexpected_error_is_one_line_and_exit_1(steelyard: Run, broken: Any) -> None:
    broken(RuntimeError("some\nthing"))
    ran = steelyard("list", "env")
    assert (ran.status, ran.out) == (1, "")
    assert "error: unexpected RuntimeError: some thing" in ran.err
    assert "Traceback" not in ran.err
    assert "--debug" in ran.err
    assert steelyard("list", "env", "--json").json["error"]["kind"] == "RuntimeError"


def test_debug_shows_the_traceback(steelyard: Run, broken: Any) -> None:
    broken(RuntimeError("boom"))
    assert "Traceback" in steelyard("list", "env", "--debug").err
    broken(Fault("the disk is full"))
    assert "Traceback" in steelyard("list", "env", "--debug").err


def test_a_fault_of_the_machine_is_exit_1(steelyard: Run, broken: Any) -> None:
    broken(Fault("the disk is full", remedy="make room"))
    ran = steelyard("list", "env")
    assert (ran.status, ran.err) == (1, "error: the disk is full\n       make room\n")


def test_an_interruption_is_exit_130(steelyard: Run, broken: Any) -> None:
    broken(KeyboardInterrupt())
    assert steelyard("list", "env").status == 130


def test_what_is_printed_is_redacted_once_secrets_are_known(
    steelyard: Run, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_kind: object) -> None:
        streams.redact_with(lambda text: text.replace("sk-12345678", "[redacted]"))
        errors.note_log_file("results/x/run.log")
        raise RuntimeError("sent sk-12345678")

    monkeypatch.setattr(list_command, "known_components", fail)
    for arguments in (["list", "env"], ["list", "env", "--debug"], ["list", "env", "--json"]):
        ran = steelyard(*arguments)
        assert "sk-12345678" not in ran.out + ran.err
        assert "results/x/run.log" in ran.out + ran.err


def test_the_boundary_forgets_the_last_command(steelyard: Run) -> None:
    errors.note_log_file("old.log")
    steelyard("--help")
    assert errors._log_file is None
