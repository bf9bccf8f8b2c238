"""A torn, bit-flipped or future journal, for `summary`, `explain-reuse` and `--reuse`."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.results.reader import RunReader
from tests.bad_input.command import HEAD, assert_refused, make_project, steelyard, steelyard_here

pytestmark = pytest.mark.integration

RUN = ("run", "./p", "oracle", "none")
NAMESPACE = Path("results") / "none_p_oracle"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one finished run, `source`."""
    folder = make_project(tmp_path_factory.mktemp("whole") / "project")
    (folder / "o.yaml").write_text(HEAD + "  - name: none_p_oracle\n")
    steelyard(folder, *RUN, "--run-id", "source", status=0)
    return folder


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "project")


def _line(data: dict[str, Any]) -> bytes:
    body = json.dumps(data, separators=(",", ":")).encode()
    return body + b"\t%08x\n" % zlib.crc32(body)


def _first_says(schema: str) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        first, _, rest = content.partition(b"\n")
        return _line({**json.loads(first.rpartition(b"\t")[0]), "schema": schema}) + rest

    return change


def _torn(content: bytes) -> bytes:
    return content[:-20]


def _flipped(content: bytes) -> bytes:
    """One bit, in the third of five lines."""
    at = [n for n, byte in enumerate(content) if byte == 10][1] + 40
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def _noise(_content: bytes) -> bytes:
    return bytes(range(256)) * 8


def _nothing(_content: bytes) -> bytes:
    return b""


DAMAGED: dict[str, tuple[Callable[[bytes], bytes], int, str]] = {
    "torn": (_torn, 4, "a torn line of"),
    "bit-flipped": (_flipped, 2, "a line with a wrong checksum before others"),
    "noise": (_noise, 0, "a line with a wrong checksum"),
    "emptied": (_nothing, 0, ""),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_records_up_to_the_damage_are_used_and_the_rest_runs_again(
    project: Path, case: str
) -> None:
    change, usable, words = DAMAGED[case]
    source = project / NAMESPACE / "source"
    records = source / "attempts.jsonl"
    records.write_bytes(change(records.read_bytes()))
    damaged = records.read_bytes()

    summary = steelyard_here(project, "summary", str(source))
    assert summary.status == 0, summary.err
    assert words in summary.out
    ledger = RunReader(source).ledger
    assert (ledger.planned, sum(ledger.outcomes.values())) == (5, 5)
    assert ledger.outcomes.get("scored", 0) == usable  # type: ignore[call-overload]

    explained = steelyard_here(project, "explain-reuse", str(source), "--with", "o.yaml", "--json")
    decisions = [row["decision"] for row in explained.json["attempts"]]
    assert (explained.status, decisions.count("reuse")) == (0, usable)
    assert words in steelyard_here(project, "explain-reuse", str(source), "--with", "o.yaml").out

    again = steelyard(project, *RUN, "--reuse", "source", "--run-id", "again", "--json", status=0)
    assert again.only["outcomes"]["scored"] == 5
    assert words in again.err  # a WARNING says what was wrong
    taken = [r for r in RunReader(project / NAMESPACE / "again").records() if r.reused_from]
    assert len(taken) == usable
    assert records.read_bytes() == damaged  # a source is left as it is


def test_records_of_a_future_version_are_not_read_and_not_paid_for_again(project: Path) -> None:
    source = project / NAMESPACE / "source"
    records = source / "attempts.jsonl"
    records.write_bytes(_first_says("attempt/9")(records.read_bytes()))
    said = ["attempts.jsonl", "'attempt/9' is newer than attempt/1", "the version that wrote it"]
    assert_refused(project, "summary", f"{NAMESPACE}/source", said=said, can_be_dry=False)
    named = ["--reuse: the run 'source' cannot be reused", "'attempt/9' is newer", "name another"]
    assert_refused(project, *RUN, "--reuse-run-id", "source", said=["'attempt/9' is newer"])
    assert_refused(project, *RUN, "--reuse=source", said=named[1:])
    explained = steelyard_here(project, "explain-reuse", str(source), "--with", "o.yaml")
    assert explained.status in (0, 2)  # told among the decisions, or instead of them
    assert "'attempt/9' is newer" in explained.out + explained.err
    latest = steelyard(project, *RUN, "--reuse", "--json", status=0)
    assert "passed over source: " in latest.only["reuse"]
    assert "'attempt/9' is newer" in latest.only["reuse"]


def test_events_of_a_future_version_are_not_read(project: Path) -> None:
    events = project / NAMESPACE / "source" / "events.jsonl"
    events.write_bytes(_first_says("event/9")(events.read_bytes()))
    said = ["events.jsonl", "'event/9' is newer than event/1", "the version that wrote it"]
    assert_refused(project, "summary", f"{NAMESPACE}/source", said=said, can_be_dry=False)


def test_flipped_events_leave_the_records_alone(project: Path) -> None:
    source = project / NAMESPACE / "source"
    events = source / "events.jsonl"
    events.write_bytes(_flipped(events.read_bytes()))
    summary = steelyard_here(project, "summary", str(source), "--json")
    assert summary.status == 0
    assert any("events.jsonl" in warning for warning in summary.json["warnings"])
    again = steelyard(project, *RUN, "--reuse", "source", "--run-id", "again", status=0)
    assert "5 scored" in again.out
    taken = [r for r in RunReader(project / NAMESPACE / "again").records() if r.reused_from]
    assert len(taken) == 5


def _made_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DOCUMENTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "torn": (lambda file: file.write_bytes(file.read_bytes()[:40]), "is not JSON"),
    "no JSON object": (lambda file: file.write_text("[]"), "is not a JSON object"),
    "bytes": (lambda file: file.write_bytes(b"\xff\xfe\x00"), "is not JSON"),
    "gone": (lambda file: file.unlink(), "no `run.json`"),
    "a folder": (_made_a_folder, "Is a directory"),
    "of the future": (
        lambda file: file.write_text(file.read_text().replace('"run/1"', '"run/9"')),
        "run/9 is newer than run/1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DOCUMENTS)
def test_a_run_without_its_document_is_no_run(project: Path, case: str) -> None:
    spoil, words = DOCUMENTS[case]
    source = project / NAMESPACE / "source"
    spoil(source / "run.json")
    for arguments in (
        ("summary", str(source)),
        ("explain-reuse", str(source), "--with", "o.yaml"),
        (*RUN, "--reuse-run-id", "source"),
    ):
        before = sorted(project.rglob("*"))
        ran = steelyard_here(project, *arguments)
        assert (ran.status, ran.out) == (2, ""), ran.err
        assert words in ran.err
        assert ran.err.count("\n") == 2  # what is wrong, and the remedy
        as_json = steelyard_here(project, *arguments, "--json").json["error"]
        assert (as_json["exit_status"], len(as_json["problems"])) == (2, 1)
        assert sorted(project.rglob("*")) == before
    latest = steelyard(project, *RUN, "--reuse", "--json", status=0)
    assert "passed over source: " in latest.only["reuse"]


@pytest.mark.parametrize("what", ["nowhere", "p", "o.yaml"])
def test_a_path_that_is_no_run_is_named(project: Path, what: str) -> None:
    for arguments in (("summary", what), ("explain-reuse", what, "--with", "o.yaml")):
        ran = steelyard_here(project, *arguments)
        assert ran.status == 2
        assert what in ran.err
        assert "name a run directory" in ran.err


def test_records_that_are_a_folder_are_no_source(project: Path) -> None:
    records = project / NAMESPACE / "source" / "attempts.jsonl"
    records.unlink()
    records.mkdir()
    said = ["attempts.jsonl cannot be read"]
    assert_refused(project, *RUN, "--reuse-run-id", "source", said=said)
