"""What happened in the cells of a set, as lines."""

from __future__ import annotations

from pathlib import Path

from steelyard.cli.evalset_logs import _last, happening_line
from steelyard.evalset.happenings import Happening, Happenings, Wanted
from tests.evalset.living_sets import LivingSet, living_set


def lines(made: LivingSet, wanted: Wanted | None = None) -> list[str]:
    found = Happenings(made.opened, made.opened.cells, wanted or Wanted()).read_on()
    return [happening_line(one).split("  ", 1)[1] for one in found]


def test_events_and_records_are_told_in_the_order_of_time(tmp_path: Path) -> None:
    made = living_set(tmp_path, repeats=1)
    made.run(
        0,
        tasks=1,
        harness={"errors": ["t0"]},
        execution={"max_retries": 1, "retry_pattern_list": ["scripted"]},
    )
    told = lines(made)
    assert told[:2] == ["refunds/base/1  planned 1 cases x 1", "refunds/base/1  t0 #1  started"]
    assert told[2].startswith("refunds/base/1  t0 #1  retried for agent_failed, in ")
    assert told[3] == "refunds/base/1  t0 #1  started again, execution 2"
    assert told[4].startswith("refunds/base/1  t0 #1  failed_error agent_failed: as scripted 0.")
    assert told[5] == "refunds/base/1  completed"
    assert len(told) == 6


def test_only_what_is_new_is_told_again(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    made.run(0)
    happenings = Happenings(made.opened, made.opened.cells, Wanted())
    assert len(list(happenings.read_on())) == 6
    assert list(happenings.read_on()) == []
    made.run(0, run_id="again", tasks=1)
    assert {one.run for one in happenings.read_on()} == {"again"}
    assert list(happenings.read_on()) == []


def test_the_last_lines_are_those_of_all_cells_together(tmp_path: Path) -> None:
    made = living_set(tmp_path, repeats=1)
    made.run(1)
    made.run(0)  # later
    happenings = Happenings(made.opened, made.opened.cells, Wanted())
    last = list(_last(happenings.read_on(), 2))
    assert {one.matrix_key for one in last} == {"refunds/base/1"}
    happenings = Happenings(made.opened, made.opened.cells, Wanted())
    assert list(_last(happenings.read_on(), 0)) == []
    assert list(happenings.read_on()) == [], "what was left out comes as if it were new"


def test_a_line_that_is_being_written_is_told_when_it_is_whole(tmp_path: Path) -> None:
    made = living_set(tmp_path)
    root = made.run(0)
    records = root / "attempts.jsonl"
    whole = records.read_bytes()
    records.write_bytes(whole[:-20])
    happenings = Happenings(made.opened, made.opened.cells[:1], Wanted())
    first = [one.case for one in happenings.read_on() if one.kind == "record"]
    records.write_bytes(whole)
    rest = [one.case for one in happenings.read_on() if one.kind == "record"]
    assert len(first) == len(rest) == 1
    assert {*first, *rest} == {"t0", "t1"}


def test_a_case_leaves_out_what_concerns_no_case(tmp_path: Path) -> None:
    made = living_set(tmp_path, repeats=1)
    made.run(0)
    assert {line.split()[1] for line in lines(made, Wanted(("t1",)))} == {"t1"}
    assert len(lines(made, Wanted(("t*",)))) == 4
    happenings = Happenings(made.opened, made.opened.cells, Wanted(("none",)))
    assert list(happenings.read_on()) == []
    assert happenings.cases == {"t0", "t1"}


def test_phases_are_told_on_request(tmp_path: Path) -> None:
    made = living_set(tmp_path, repeats=1)
    made.run(0, harness={"opens": True})
    assert not any(" opened" in line for line in lines(made))
    assert any(" opened" in line for line in lines(made, Wanted(has_phases=True)))


def test_run_logs_are_told_on_request_each_entry_with_its_case(tmp_path: Path) -> None:
    made = living_set(tmp_path, repeats=1)
    root = made.run(0)
    (root / "run.log").write_text(
        "2026-12-01T00:00:00.000Z INFO steelyard run=r: begins\n"
        '2026-12-01T00:00:01.000Z ERROR steelyard run=r task="a b" attempt=1: fails task=t1\n'
        "  Traceback: of it\n"
        '{"schema": "log/1", "at": "2026-12-01T00:00:02.000Z", "task": "t1", "message": "x"}\n'
        "half a li"
    )
    happenings = Happenings(made.opened, made.opened.cells[:1], Wanted(has_log=True))
    told = [one for one in happenings.read_on() if one.kind == "log"]
    assert [one.case for one in told] == [None, "a b", "a b", "t1"]
    assert told[2].at == "2026-12-01T00:00:01.000Z"
    with (root / "run.log").open("a") as file:
        file.write("ne\n")
    assert [str(one.data["text"]) for one in happenings.read_on()] == ["half a line"]


def test_texts_of_others_move_no_cursor() -> None:
    one = Happening(
        "", "p/a\x1b[2J/1", "r", "event", "c\u202e", 1, {"kind": "warning", "message": "\x07"}
    )
    assert happening_line(one) == "-  p/a\\x1b[2J/1  c\\u202e #1  warning: \\x07"


def test_a_run_that_cannot_be_read_is_named_and_the_rest_is_told(tmp_path: Path) -> None:
    made = living_set(tmp_path, repeats=1)
    first, second = made.run(0), made.run(1)
    (first / "events.jsonl").unlink()
    (first / "events.jsonl").mkdir()
    happenings = Happenings(made.opened, made.opened.cells, Wanted())
    told = list(happenings.read_on())
    assert {one.run for one in told if one.kind == "event"} == {second.name}
    assert any("refunds/base/1" in warning for warning in happenings.warnings)
