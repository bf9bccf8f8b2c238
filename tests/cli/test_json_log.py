"""`--log-format json`: what a launch says on standard error, one object a line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.json_log import JsonNews
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.engine.events import RequestResult, RunOutcome

Run = Callable[..., Any]
COMPONENTS = Path(__file__).parent.parent / "engine/components.py"


def entries(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\n") if line]


def launched(steelyard: Run, project: Path, *arguments: str) -> Any:
    request = {
        "name": "r",
        "benchmark": {"id": f"{COMPONENTS}:Counted"},
        "harness": {"id": f"{COMPONENTS}:Scripted", "fatal": ["t1"]},
        "model": {"id": "none"},
        "environment": {"id": "host_process"},
        "execution": {"analysis": True},
    }
    (project / "o.json").write_text(json.dumps({"requests": [request]}))
    return steelyard("launch", "o.json", "--log-format", "json", *arguments)


def test_everything_on_standard_error_is_an_entry(steelyard: Run, project: Path) -> None:
    ended = launched(steelyard, project)
    found = entries(ended.err)
    assert {entry["schema"] for entry in found} == {"log/1"}
    (issue,) = [entry for entry in found if entry["task"] == "t1" and entry["level"] == "WARNING"]
    assert (issue["request"], issue["attempt"], issue["execution"]) == ("r", 1, 1)
    (root,) = (project / "results/r").iterdir()
    assert issue["run"] == root.name
    (said,) = [entry for entry in found if "got no point or failed" in entry["message"]]
    assert said["logger"] == "steelyard.engine.analysis"
    end = found[-1]
    assert (end["level"], end["request"]) == ("ERROR", "r")
    assert end["message"].startswith("r: failed: 1 of 5 attempts ended FATAL")
    assert "r: failed" in ended.out  # the tables stay as they are


def test_without_progress_only_the_log_is_there(steelyard: Run, project: Path) -> None:
    found = entries(launched(steelyard, project, "--progress", "none", "--log-level", "ERROR").err)
    assert [entry["message"].split(",")[0] for entry in found] == [
        "r: failed: 1 of 5 attempts ended FATAL"
    ]


def test_the_consoles_form_is_not_the_files(steelyard: Run, project: Path) -> None:
    launched(steelyard, project)
    (root,) = (project / "results/r").iterdir()
    assert (root / "run.log").read_text().startswith("20")
    launched(steelyard, project, "--file-log-format", "json", "--run-id", "two")
    assert entries((project / "results/r/two/run.log").read_text())


def test_a_format_that_is_none_is_refused(steelyard: Run, project: Path) -> None:
    ended = launched(steelyard, project, "--file-log-format", "xml")
    assert ended.status == 2
    assert "--file-log-format: found the text 'xml'" in ended.err


def test_what_the_log_has_said_is_no_notice_again() -> None:
    stream = io.StringIO()
    news = JsonNews("auto", Redactor(SecretStore({})), "INFO", stream)
    record = logging.LogRecord("steelyard.x", logging.INFO, "f", 1, "r: taken from an earlier run",
                               (), None)  # fmt: skip
    news.handler.handle(record)
    news.notice("r", "taken from an earlier run")
    news.notice("r", "another thing")
    assert [entry["message"] for entry in entries(stream.getvalue())] == [
        "r: taken from an earlier run",
        "another thing",
    ]


def test_a_reader_that_is_gone_ends_nothing() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    news = JsonNews("auto", Redactor(SecretStore({})), "INFO", Gone())
    news.notice(None, "a")
    news.request_ended(RequestResult("r", RunOutcome.COMPLETED, None, Path("x"), 1, {}, None, None))
    news.close()


@pytest.mark.parametrize("words", ["sk-canary-99aa77", 'sk-"quote"-\\-é-77'])
def test_a_secret_in_a_notice_is_hidden(words: str) -> None:
    stream = io.StringIO()
    store = SecretStore({})
    store.put("config:x", words)
    news = JsonNews("auto", Redactor(store), "INFO", stream)
    news.notice(None, f"the key {words} was refused")
    assert [entry["message"] for entry in entries(stream.getvalue())] == [
        "the key [redacted] was refused"
    ]
