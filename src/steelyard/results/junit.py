"""Runs and comparisons as JUnit XML, for programs that gather tests. Pure but for reading runs.

Valid by the schemas of Ant and of Jenkins alike. Texts are strangers': what XML cannot hold is
left out, the rest is escaped and cut. Parts are given one by one; only a few facts of each task
are held.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Final

from steelyard.components.issues import Outcome, Severity
from steelyard.config import printable
from steelyard.config.errors import SteelyardError
from steelyard.results.comparison import Compared
from steelyard.results.failures import PrimaryMetric
from steelyard.results.gates import GateResult
from steelyard.results.reader import RunReader
from steelyard.results.records import AttemptRecord
from steelyard.results.records_io import MalformedRecord

MAX_NAME_CHARS: Final = 300
MAX_MESSAGE_CHARS: Final = 300
MAX_TEXT_CHARS: Final = 4_000
"""Of one test: what its answer was, and why it got nothing."""
MAX_ALL_TEXT_CHARS: Final = 16_000_000
"""Of all tests of a file; those after it have messages alone."""
_NO_TIME: Final = "1970-01-01T00:00:00"
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_RAN: Final = frozenset(
    {Outcome.SCORED, Outcome.FAILED_FATAL, Outcome.FAILED_ERROR, Outcome.TIMED_OUT}
)


@dataclass(slots=True)
class JunitCase:
    """One test: `verdict` is empty where it passed."""

    name: str
    seconds: float = 0.0
    verdict: str = ""
    """`failure`, `error`, `skipped`."""
    kind: str = ""
    message: str = ""
    text: str = ""


@dataclass(slots=True)
class JunitSuite:
    """Tests that belong together."""

    name: str
    package: str
    timestamp: str = _NO_TIME
    properties: Mapping[str, object] = field(default_factory=dict)


def launch_junit(
    runs: Sequence[tuple[str, Path | None]], gates: Sequence[GateResult] = ()
) -> Iterator[str]:
    """Give the document of some runs, a suite each and one for gates.

    A test is a task: a failure where no attempt got a point, an error where one ended FATAL,
    skipped where none ran.

    Args:
        runs: name and run directory; None where it has not begun.
        gates: what was asked of them.
    """
    yield _HEAD
    room = _Room(MAX_ALL_TEXT_CHARS)
    for number, (name, root) in enumerate(runs):
        if root is None:
            case = JunitCase("run", verdict="skipped", message="not run: it has not begun")
            yield from _suite(number, JunitSuite(name, name, _NO_TIME), [case])
        else:
            yield from _run_suite(number, name, root, room)
    if gates:
        yield from _gate_suite(len(runs), gates)
    yield _FOOT


def comparison_junit(found: Sequence[Compared], gates: Sequence[GateResult]) -> Iterator[str]:
    """Give the document of comparisons, a suite each and one for gates.

    A test is a task: a failure where the run is worse at it than the base, skipped where one of
    the two has no figure for it.
    """
    yield _HEAD
    for number, each in enumerate(found):
        sign = 1 if each.asked.spec.higher_is_better else -1
        cases = [
            JunitCase(
                pair.task_id,
                verdict="failure" if round(sign * pair.difference, 12) < 0 else "",
                kind="worse",
                message=f"{each.asked.metric} was {pair.first:g}, is {pair.second:g}",
            )
            for pair in each.pairs
        ]
        paired = {pair.task_id for pair in each.pairs}
        cases += [
            JunitCase(task_id, verdict="skipped", message="not in both runs with a figure")
            for task_id in dict.fromkeys((*each.first.numbers, *each.second.numbers))
            if task_id not in paired
        ]
        suite = JunitSuite(
            f"{each.second.request}/{each.second.run_id}",
            f"against {each.first.request}/{each.first.run_id}",
            _timestamp(each.second.document),
            {
                "difference": f"{each.difference.value:.6g}",
                "interval": each.difference.interval or each.difference.note,
                "p": each.test.p,
            },
        )
        yield from _suite(number, suite, cases)
    if gates:
        yield from _gate_suite(len(found), gates)
    yield _FOOT


def suites_junit(
    suites: Iterable[tuple[JunitSuite, Sequence[JunitCase]]], gates: Sequence[GateResult] = ()
) -> Iterator[str]:
    """Give a document of suites that others made, and one for gates."""
    yield _HEAD
    number = 0
    for number, (suite, cases) in enumerate(suites, 1):
        yield from _suite(number - 1, suite, cases)
    if gates:
        yield from _gate_suite(number, gates)
    yield _FOOT


# -- a run -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Room:
    """How many characters of text are left."""

    chars: int

    def take(self, text: str) -> str:
        cut = text[: min(MAX_TEXT_CHARS, self.chars)]
        self.chars -= len(cut)
        return cut


@dataclass(slots=True)
class _TaskState:
    seconds: float = 0.0
    has_run: bool = False
    has_point: bool = False
    fatal: int = 0
    """The first attempt that ended FATAL; 0 where none did."""
    pointless: int = 0
    """The first attempt that ran and got nothing."""
    outcome: str = ""


def _run_suite(number: int, name: str, root: Path, room: _Room) -> Iterator[str]:
    try:
        reader = RunReader(root)
        metric = PrimaryMetric(reader.document)
        states: dict[str, _TaskState] = {}
        for record in reader.records():
            _note(states.setdefault(record.task_id, _TaskState()), record, metric)
        k = reader.plan.get("k")
        planned = reader.settled_ledger.planned
        planned_tasks = -(-planned // (k if isinstance(k, int) and k > 0 else 1))
    except SteelyardError as error:
        case = JunitCase("run", verdict="error", kind="unreadable", message=str(error))
        yield from _suite(number, JunitSuite(name, str(root.name), _NO_TIME), [case])
        return
    unseen = planned_tasks - len(states)
    suite = JunitSuite(
        name,
        reader.run_id,
        _timestamp(reader.document),
        {
            "run_id": reader.run_id,
            "metric": metric.name,
            "planned_tasks": planned_tasks,
            "planned_attempts": planned,
        },
    )
    verdicts = [_verdict(state) for state in states.values()]
    yield _suite_head(number, suite, verdicts + ["skipped"] * (unseen > 0), states.values())
    for (task_id, state), verdict in zip(states.items(), verdicts, strict=True):
        case = JunitCase(task_id, state.seconds, verdict, state.outcome)
        if verdict == "skipped":
            case.message = f"not run: {state.outcome}"
        elif verdict:
            _explain(case, reader, metric, state.fatal or state.pointless, room)
        yield _case(case, name)
    if unseen > 0:
        yield _case(
            JunitCase(f"{unseen} more tasks", verdict="skipped", message="never started"), name
        )
    yield _SUITE_FOOT


def _note(state: _TaskState, record: AttemptRecord, metric: PrimaryMetric) -> None:
    timing = record.timing
    state.seconds += timing.setup_s + timing.agent_s + timing.collect_s + timing.evaluate_s
    if record.outcome not in _RAN:
        state.outcome = state.outcome or record.outcome.value
        return
    state.has_run = True
    if record.outcome is Outcome.FAILED_FATAL:
        state.fatal = state.fatal or record.attempt
    elif metric.value(record) is not None and not metric.is_nothing(record):
        state.has_point = True
    else:
        state.pointless = state.pointless or record.attempt
    if record.outcome is not Outcome.SCORED or not state.outcome:
        state.outcome = record.outcome.value


def _verdict(state: _TaskState) -> str:
    if state.fatal:
        return "error"
    if not state.has_run:
        return "skipped"
    return "" if state.has_point else "failure"


def _explain(
    case: JunitCase, reader: RunReader, metric: PrimaryMetric, attempt: int, room: _Room
) -> None:
    try:
        record = reader.record(case.name, attempt)
    except (SteelyardError, MalformedRecord):
        record = None
    if record is None:
        return
    value = metric.value(record)
    issues = [f"{i.severity} {i.code} ({i.phase}): {i.message}" for i in record.last_issues]
    worst = next(
        (
            text
            for text, i in zip(issues, record.last_issues, strict=True)
            if i.severity is not Severity.WARNING
        ),
        None,
    )
    case.kind = record.outcome.value
    figure = "no score" if value is None else f"{metric.name} {value:g}"
    case.message = f"attempt {attempt}: {worst or figure}"
    details = [f"{name}: {_text(each)}" for name, each in record.details.items()]
    answer = record.answer if record.answer is not None else record.answer_file
    half = MAX_TEXT_CHARS // 2
    parts = ["\n".join([*details, *issues])[:half]]
    parts += [f"answer:\n{answer[:half]}"] if answer else []
    case.text = room.take("\n".join(part for part in parts if part))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value[:MAX_TEXT_CHARS]
    return json.dumps(value, ensure_ascii=False, default=str)[:MAX_TEXT_CHARS]


def _timestamp(document: Mapping[str, Any]) -> str:
    """Give when a run began, in UTC without a zone, as the schemas want it."""
    return timestamp_of(str(document.get("created_at") or ""))


def timestamp_of(created_at: str) -> str:
    """Give a time in UTC without a zone, as the schemas want it; 1970 where there is none."""
    found = created_at[:19]
    return found if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", found) else _NO_TIME


def _gate_suite(number: int, gates: Sequence[GateResult]) -> Iterator[str]:
    cases = [
        JunitCase(
            f"{result.gate.option} {result.gate.request}".strip(),
            verdict="" if result.is_met else "failure",
            kind="gate",
            message=result.said,
        )
        for result in gates
    ]
    yield from _suite(number, JunitSuite("gates", "steelyard", _NO_TIME), cases)


# -- XML ---------------------------------------------------------------------------------------

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n'
_FOOT: Final = "</testsuites>\n"
_SUITE_FOOT: Final = "    <system-out/>\n    <system-err/>\n  </testsuite>\n"


def _suite(number: int, suite: JunitSuite, cases: Sequence[JunitCase]) -> Iterator[str]:
    yield _suite_head(number, suite, [case.verdict for case in cases], cases)
    for case in cases:
        yield _case(case, suite.name)
    yield _SUITE_FOOT


def _suite_head(
    number: int,
    suite: JunitSuite,
    verdicts: Sequence[str],
    timed: Iterable[JunitCase | _TaskState],
) -> str:
    attributes = _attributes(
        {
            "id": number,
            "name": suite.name,
            "package": suite.package,
            "timestamp": suite.timestamp,
            "hostname": "localhost",
            "tests": len(verdicts),
            "failures": verdicts.count("failure"),
            "errors": verdicts.count("error"),
            "skipped": verdicts.count("skipped"),
            "time": f"{sum(each.seconds for each in timed):.3f}",
        }
    )
    properties = "".join(
        f"      <property{_attributes({'name': name, 'value': value})}/>\n"
        for name, value in suite.properties.items()
    )
    block = f"    <properties>\n{properties}    </properties>\n" if properties else (
        "    <properties/>\n"
    )  # fmt: skip
    return f"  <testsuite{attributes}>\n{block}"


def _case(case: JunitCase, suite: str) -> str:
    head = _attributes({"classname": suite, "name": case.name, "time": f"{case.seconds:.3f}"})
    if not case.verdict:
        return f"    <testcase{head}/>\n"
    said: dict[str, object] = {"message": case.message}
    if case.verdict != "skipped":
        said["type"] = case.kind or case.verdict
    opened = f"      <{case.verdict}{_attributes(said, MAX_MESSAGE_CHARS)}"
    body = f"{opened}>{_content(case.text)}</{case.verdict}>\n" if case.text else f"{opened}/>\n"
    return f"    <testcase{head}>\n{body}    </testcase>\n"


def _attributes(values: Mapping[str, object], max_chars: int = MAX_NAME_CHARS) -> str:
    return "".join(f' {name}="{_attribute(value, max_chars)}"' for name, value in values.items())


def _attribute(value: object, max_chars: int) -> str:
    text = printable.spaced(str(value)[: max_chars * 4]).strip()
    text = _NOT_XML.sub("", text)
    return escape(text if len(text) <= max_chars else f"{text[: max_chars - 1]}…")


def _content(text: str) -> str:
    return escape(_NOT_XML.sub("", text), quote=False)
