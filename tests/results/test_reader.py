"""Reading a run in every state, and with every damage, closes the ledger."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields
from pathlib import Path

import pytest

from steelyard.components.issues import Outcome
from steelyard.components.steps import Step
from steelyard.components.values import Usage
from steelyard.results.documents import FutureSchema, RunUnreadable
from steelyard.results.layout import attempt_folder
from steelyard.results.lines import encode
from steelyard.results.reader import RunReader, RunState
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import _READERS, MalformedRecord, record_from_json, record_to_json
from steelyard.results.step_log import StepLog
from tests.results.workload import a_record, an_issue
from tests.results.written import write_run


def counts(reader: RunReader) -> dict[str, int]:
    return {outcome: n for outcome, n in reader.ledger.as_json().items() if n}


def test_a_record_comes_back_as_it_was() -> None:
    from steelyard.components.issues import IssueCode

    record = a_record(
        issues=(an_issue(IssueCode.TURN_LIMIT),),
        artifacts=({"path": "a", "sha256": "0", "bytes": 1},),
        trajectory={"path": "t", "sha256": "0", "steps": 1},
        details={"why": ["x"]},
        category="c",
        cluster="k",
        reused_from={"run_id": "r", "path": "p", "cost_usd": None},
    )
    assert record_from_json(record_to_json(record)) == record


def test_every_field_is_written_and_read() -> None:
    names = {field.name for field in fields(AttemptRecord)}
    assert set(_READERS) == names
    assert set(record_to_json(a_record())) == names | {"schema"}


def test_a_record_has_every_field_of_the_contract() -> None:
    named = {
        "task_id", "attempt", "outcome", "metrics", "answer", "issues", "executions", "usage",
        "timing", "trust", "environment", "trajectory", "artifacts", "reused_from",
    }  # fmt: skip
    data = record_to_json(a_record())
    assert named <= set(data)
    assert set(data["usage"]) == {
        "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "requests",
        "cost_usd",
    }  # fmt: skip
    assert {"queued_s", "setup_s", "agent_s", "collect_s", "evaluate_s", "started_at",
            "finished_at"} <= set(data["timing"])  # fmt: skip


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "attempt/9"),
        ("outcome", "great"),
        ("attempt", 0),
        ("attempt", True),
        ("metrics", {"m": "high"}),
        ("metrics", []),
        ("usage", {}),
        ("timing", None),
        ("issues", [{}]),
        ("trust", "full"),
        ("answer", 3),
        ("artifacts", [1]),
    ],
)
def test_a_record_that_is_not_well_formed_is_refused_with_its_field(
    field: str, value: object
) -> None:
    data = {**record_to_json(a_record()), field: value}
    with pytest.raises(MalformedRecord, match=field):
        record_from_json(data)


LATER = ("answer_sha256", "checkpoint", "content", "evaluation_mode")


@pytest.mark.parametrize("field", LATER)
def test_a_record_of_before_a_field_is_read(field: str) -> None:
    data = record_to_json(a_record())
    del data[field]
    assert getattr(record_from_json(data), field) is None


@pytest.mark.parametrize("field", sorted({*record_to_json(a_record())} - {*LATER}))
def test_a_record_without_a_field_is_refused(field: str) -> None:
    data = record_to_json(a_record())
    del data[field]
    with pytest.raises(MalformedRecord):
        record_from_json(data)


def test_a_finished_run(tmp_path: Path) -> None:
    records = [a_record("a", 1), a_record("a", 2, outcome=Outcome.TIMED_OUT)]
    reader = RunReader(write_run(tmp_path, records, tasks=2).root)
    assert reader.state is RunState.FINISHED
    assert counts(reader) == {"scored": 1, "timed_out": 1, "not_started": 2}
    assert reader.ledger.planned == 4
    assert reader.in_flight == ()
    assert reader.warnings == ()


def test_a_dead_run_names_what_was_in_flight(tmp_path: Path) -> None:
    started = [("a", 1), ("a", 2), ("b", 1)]
    folder = write_run(tmp_path, [a_record("a", 1)], tasks=3, started=started, outcome=None)
    reader = RunReader(folder.root)
    assert reader.state is RunState.DEAD
    assert [flight.token for flight in reader.in_flight] == ["token-a-2", "token-b-1"]
    assert [reader.spent_in_flight(flight) for flight in reader.in_flight] == [None, None]
    log = StepLog(folder.root, attempt_folder("a", 2))
    log.append(Step("user", "go"))
    for number in range(3):
        log.append(Step("agent", str(number), usage=Usage(10, 5, requests=1, cost_usd=0.25)))
    log.close()
    with (folder.root / attempt_folder("a", 2) / "trajectory.jsonl").open("ab") as file:
        file.write(b'{"schema":"step/1","source":"agent"')  # torn by the kill
    assert reader.spent_in_flight(reader.in_flight[0]) == Usage(30, 15, requests=3, cost_usd=0.75)
    assert counts(reader) == {"scored": 1, "cancelled": 2, "not_started": 3}


def test_a_running_run_counts_what_is_in_flight_apart(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path, [a_record("a")], tasks=2, started=[("a", 1), ("b", 1)], outcome=None,
        keep_alive=True,
    )  # fmt: skip
    reader = RunReader(folder.root)
    assert reader.state is RunState.RUNNING
    assert reader.ledger.in_flight == 1
    assert counts(reader) == {"scored": 1, "not_started": 2}
    folder.lock.release()
    assert RunReader(folder.root).state is RunState.DEAD


def test_a_retried_execution_is_in_flight_once(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [], tasks=1, started=[("a", 1), ("a", 1)], outcome=None)
    assert len(RunReader(folder.root).in_flight) == 1


def test_an_attempt_recorded_twice_counts_once(tmp_path: Path) -> None:
    records = [a_record("a", 1, answer="old"), a_record("a", 1, answer="new")]
    reader = RunReader(write_run(tmp_path, records).root)
    assert counts(reader) == {"scored": 1, "not_started": 1}
    assert [record.answer for record in reader.records()] == ["new"]


def test_a_torn_tail_is_left_out_with_a_warning(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record("a"), a_record("b")])
    data = folder.files.attempts.read_bytes()
    folder.files.attempts.write_bytes(data[:-5])
    reader = RunReader(folder.root)
    assert counts(reader) == {"scored": 1, "not_started": 3}
    assert "torn" in reader.warnings[0]


def test_a_bit_flip_ends_the_reading_and_the_ledger_still_closes(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record(name) for name in "abc"])
    data = bytearray(folder.files.attempts.read_bytes())
    data[len(data) // 2] ^= 0x10
    folder.files.attempts.write_bytes(data)
    reader = RunReader(folder.root)
    assert counts(reader) == {"scored": 1, "not_started": 5}
    assert "wrong checksum" in reader.warnings[0]


def test_events_that_are_lost_do_not_make_attempts_vanish(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record(name) for name in "abc"])
    folder.files.events.write_bytes(b"")
    ledger = RunReader(folder.root).ledger
    assert ledger.planned == 3
    assert sum(ledger.outcomes.values()) == 3


@pytest.mark.parametrize("name", ["attempts.jsonl", "events.jsonl"])
def test_a_journal_of_a_future_version_is_refused_by_name(name: str, tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record()])
    kind = "attempt" if name.startswith("attempt") else "event"
    with (folder.root / name).open("ab") as file:
        file.write(encode({"schema": f"{kind}/7"}))
    with pytest.raises(FutureSchema, match=f"{kind}/7"):
        _ = RunReader(folder.root).ledger


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "says schema"),
        (b'{"schema": "run/9"}', "newer"),
        (b"\xff", "not JSON"),
    ],
)
def test_a_document_that_cannot_be_used_is_named(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(RunUnreadable, match=reason):
        RunReader(tmp_path)


def test_a_path_that_is_a_file_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunUnreadable, match="no run here"):
        RunReader(tmp_path / "file")


def test_a_malformed_record_is_left_out_with_a_warning(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record("a")])
    with folder.files.attempts.open("ab") as file:
        file.write(encode({"schema": "attempt/1", "task_id": "b", "attempt": 1}))
        file.write(encode({"schema": "attempt/1", "task_id": "c", "attempt": 1, "outcome": []}))
        file.write(encode({"schema": "attempt/1"}))
    reader = RunReader(folder.root)
    assert [record.task_id for record in reader.records()] == ["a"]
    assert counts(reader)["failed_fatal"] == 2
    assert len(reader.warnings) == 3


def test_pages_and_filters(tmp_path: Path) -> None:
    reader = RunReader(write_run(tmp_path, [a_record("t", n) for n in range(1, 8)], k=7).root)
    assert [record.attempt for record in reader.page(2, 3)] == [3, 4, 5]
    even = reader.page(1, 2, lambda record: record.attempt % 2 == 0)
    assert [record.attempt for record in even] == [4, 6]
    found = reader.record("t", 5)
    assert found is not None
    assert found.attempt == 5
    assert reader.record("t", 9) is None


def test_the_tail_goes_on_where_it_ended_and_waits_for_whole_lines(tmp_path: Path) -> None:
    folder = write_run(tmp_path, [a_record("a")])
    reader = RunReader(folder.root)
    first, position = reader.tail()
    line = encode(record_to_json(a_record("b")))
    with folder.files.attempts.open("ab") as file:
        file.write(line[:20])
        file.flush()
        assert reader.tail(position) == ([], position)
        file.write(line[20:])
    second, end = reader.tail(position)
    assert [record.task_id for record in first + second] == ["a", "b"]
    assert end == folder.files.attempts.stat().st_size


def test_memory_does_not_grow_with_what_records_hold(tmp_path: Path) -> None:
    answer = "x" * 20_000
    records = [a_record(f"task-{n}", 1, answer=answer) for n in range(1000)]
    folder = write_run(tmp_path, records)
    del records
    tracemalloc.start()
    reader = RunReader(folder.root)
    assert sum(1 for _ in reader.records()) == 1000
    assert reader.ledger.planned == 2000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert folder.files.attempts.stat().st_size > 20_000_000
    assert peak < 8_000_000
