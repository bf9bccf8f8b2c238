"""Agents' own logs become steps with tool calls and figures, and no log harms the reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.harnesses.cli_agent.log import (
    MAX_STEPS,
    MAX_TEXT_CHARS,
    AgentLog,
    Reported,
    entries,
)
from steelyard.harnesses.cli_agent.table import AGENTS

LOGS = Path(__file__).with_name("logs")
FILES = {
    "claude_code": ("claude_code.jsonl", "claude_code.printed.jsonl"),
    "codex": ("codex.jsonl", "codex.printed.jsonl"),
    "mini_swe_agent": ("mini_swe_agent.json", None),
}
EXPECTED: dict[str, tuple[list[str], list[str], Reported, str]] = {
    "claude_code": (
        ["Read", "Edit", "Bash"],
        ["1\thelo\n2\t", "The file /workspace/note.txt has been updated successfully.", "Linux"],
        Reported(16854, 65, 0, 4, 0.068716),
        "The greeting is mended.",
    ),
    "codex": (
        ["exec_command", "exec_command"],
        ["Success. Updated the following files:", "Linux"],
        Reported(15091, 59, 0, 3),
        "The greeting is mended.",
    ),
    "mini_swe_agent": (
        ["bash", "bash", "bash"],
        ['"returncode": 0', '"output": "Linux\\n"', "action was not executed"],
        Reported(2324, 58, 0, 3, 0.0),
        "mended\n",
    ),
}


def data_of(agent: str) -> tuple[bytes, bytes]:
    log, printed = FILES[agent]
    return (LOGS / log).read_bytes(), b"" if printed is None else (LOGS / printed).read_bytes()


def read(agent: str, log: bytes, printed: bytes = b"") -> AgentLog:
    return AGENTS[agent].read_log(log, printed)


def tools(log: AgentLog) -> list[str]:
    return [call.name for step in log.steps for call in step.tool_calls]


def results(log: AgentLog) -> list[str]:
    return [result.content for step in log.steps for result in step.results]


def test_every_agent_of_the_table_has_a_log_here() -> None:
    assert set(FILES) == set(AGENTS) == set(EXPECTED)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_log_of_the_real_program_gives_its_tool_calls_results_tokens_and_cost(agent: str) -> None:
    names, contents, reported, answer = EXPECTED[agent]
    log = read(agent, *data_of(agent))
    assert tools(log) == names
    assert len(results(log)) == len(contents)
    for found, expected in zip(results(log), contents, strict=True):
        assert expected in found
    assert log.reported == reported
    assert log.answer == answer
    assert log.version == AGENTS[agent].version
    assert (log.is_cut, log.unread_lines, log.failure, log.denied) == (False, 0, None, 0)
    usages = [step.usage for step in log.steps if step.usage is not None]
    assert sum(usage.input_tokens for usage in usages) == reported.input_tokens
    assert sum(usage.output_tokens for usage in usages) == reported.output_tokens


@pytest.mark.parametrize("agent", AGENTS)
def test_a_result_answers_the_call_it_names(agent: str) -> None:
    log = read(agent, *data_of(agent))
    asked = [call.id for step in log.steps for call in step.tool_calls]
    answered = [result.call_id for step in log.steps for result in step.results]
    assert answered == asked


@pytest.mark.parametrize("agent", ["claude_code", "codex"])
def test_a_log_cut_off_anywhere_gives_what_stands_before_and_says_so(agent: str) -> None:
    data, _printed = data_of(agent)
    whole = read(agent, data)
    ends = [number for number, byte in enumerate(data) if byte == ord("\n")]
    for end in range(1, len(data), 211):
        log = read(agent, data[:end])
        at_line_end = end in ends or end - 1 in ends  # valid JSON needs no line feed after it
        assert log.is_cut is not at_line_end, end
        assert log.unread_lines == 0
        assert len(log.steps) <= len(whole.steps)


def test_a_trajectory_cut_off_is_told_and_an_absent_one_is_not() -> None:
    data, _ = data_of("mini_swe_agent")
    for end in range(1, len(data) - 2, 997):
        log = read("mini_swe_agent", data[:end])
        assert (log.is_cut, log.steps) == (True, ())
    assert not read("mini_swe_agent", b"").is_cut


def test_a_line_that_is_no_object_is_counted_and_the_others_are_read() -> None:
    found = entries(b'{"a":1}\nnot json\n[1]\n\n{"b":2}\n{"torn":')
    assert found.objects == ({"a": 1}, {"b": 2})
    assert (found.unread_lines, found.is_cut) == (2, True)


@pytest.mark.parametrize("agent", AGENTS)
@given(log=st.binary(max_size=300), printed=st.binary(max_size=300))
def test_no_bytes_make_a_reader_fail(agent: str, log: bytes, printed: bytes) -> None:
    read(agent, log, printed)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@st.composite
def twisted(draw: st.DrawFn, agent: str) -> bytes:
    """A real log with one value somewhere replaced by any JSON."""
    data = data_of(agent)[0]
    if agent == "mini_swe_agent":
        document = orjson.loads(data)
        _twist(draw, document)
        return orjson.dumps(document)
    lines = [orjson.loads(line) for line in data.splitlines()]
    for line in draw(st.lists(st.sampled_from(lines), min_size=1, max_size=4)):
        _twist(draw, line)
    return b"\n".join(orjson.dumps(line) for line in lines)


def _twist(draw: st.DrawFn, tree: Any) -> None:
    while True:
        keys = sorted(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        if not isinstance(tree[key], dict | list) or draw(st.integers(0, 4)) == 0:
            value = draw(JSON)
            try:
                orjson.dumps(value)
            except TypeError:
                value = None  # an integer that JSON's 64 bits cannot hold
            tree[key] = value
            return
        tree = tree[key]


@pytest.mark.parametrize("agent", AGENTS)
@given(data=st.data())
def test_no_value_in_a_log_makes_a_reader_fail_or_a_count_negative(
    agent: str, data: st.DataObject
) -> None:
    log = read(agent, data.draw(twisted(agent)))
    for value in log.reported.as_json().values():
        assert value >= 0
    for step in log.steps:
        orjson.dumps(step.as_json())


def test_a_flood_of_steps_and_endless_texts_are_bounded() -> None:
    line = orjson.dumps(
        {
            "type": "user",
            "message": {"role": "user", "content": "x" * (MAX_TEXT_CHARS + 5)},
        }
    )
    log = read("claude_code", b"\n".join([line] * (MAX_STEPS + 7)))
    assert len(log.steps) == MAX_STEPS
    assert log.left_out_steps == 7
    assert log.steps[0].message.endswith("[5 characters left out]")


def test_deep_nesting_is_a_line_that_is_not_read() -> None:
    deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    assert read("codex", deep).unread_lines == 1


@pytest.mark.parametrize(
    ("result", "failure", "is_limit"),
    [
        ({"subtype": "success", "is_error": False, "result": "ok"}, None, False),
        ({"subtype": "error_max_turns", "is_error": True}, None, True),
        ({"subtype": "success", "is_error": True, "result": "API Error: 500"}, "API Error", False),
        ({"subtype": "error_during_execution", "is_error": False}, "error_during", False),
    ],
)
def test_claude_says_how_it_ended_whatever_its_exit_code(
    result: dict[str, Any], failure: str | None, is_limit: bool
) -> None:
    log = read("claude_code", b"", orjson.dumps({"type": "result", **result}))
    assert (failure or "") in (log.failure or "")
    assert (log.failure is None, log.hit_turn_limit) == (failure is None, is_limit)


def test_tool_calls_that_claude_denied_are_counted() -> None:
    line = orjson.dumps({"type": "result", "permission_denials": [{"tool_name": "Bash"}]})
    assert read("claude_code", b"", line).denied == 1


def test_codex_says_when_its_turn_failed() -> None:
    failed = b'{"type":"turn.failed","error":{"message":"stream disconnected"}}\n'
    assert read("codex", b"", failed).failure == "stream disconnected"


def test_mini_says_when_it_ran_into_its_limit() -> None:
    document = orjson.dumps({"info": {"exit_status": "LimitsExceeded"}, "messages": []})
    assert read("mini_swe_agent", document).hit_turn_limit
    crashed = orjson.dumps({"info": {"exit_status": "RateLimitError"}, "messages": []})
    assert read("mini_swe_agent", crashed).failure == "it ended with RateLimitError"
