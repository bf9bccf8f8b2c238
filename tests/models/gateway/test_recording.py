"""What a conversation adds from call to call becomes steps, once, in order, within bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.components.model import ToolCall
from steelyard.components.steps import Step, ToolResult
from steelyard.components.values import Usage
from steelyard.models.gateway import recording
from steelyard.models.gateway.recording import CallEnd, Recorder, with_observations
from steelyard.models.protocols.form import Reading

BIG = 10_000


def recorder(max_bytes: int = BIG, redact: Any = bytes) -> Recorder:
    return Recorder("mock", redact, max_bytes)


def said(text: str = "", *calls: ToolCall, protocol: str = "openai-chat", **more: Any) -> CallEnd:
    reading = Reading(text, calls, "stop", None, "mock", None)
    return CallEnd(protocol, reading, Usage(requests=1), 0.5, **more)


def shown(steps: list[Step]) -> list[Any]:
    found: list[Any] = []
    for step in steps:
        results = [(result.call_id, result.content) for result in step.results]
        found.append((step.source, results or step.message))
    return found


CHAT = [
    [{"role": "system", "content": "be brief"}, {"role": "user", "content": "do it"}],
    [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}, {"id": "c2"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
    ],
    [{"role": "assistant", "content": "done"}, {"role": "user", "content": "more"}],
]
MESSAGES = [
    [{"role": "user", "content": [{"type": "text", "text": "do it"}]}],
    [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "t"}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                {"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text"}] * 0},
                {"type": "text", "text": "and hurry"},
            ],
        },
    ],
]
RESPONSES = [
    [{"role": "user", "content": [{"type": "input_text", "text": "do it"}]}],
    [
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
    ],
]


def test_chat_steps_are_what_each_request_adds() -> None:
    made = recorder()
    first, key = made.asked("openai-chat", {"messages": CHAT[0]})
    assert shown(first) == [("system", "be brief"), ("user", "do it")]
    made.answered(key, said("", ToolCall("c1", "t", "{}")))
    second, key = made.asked("openai-chat", {"messages": CHAT[0] + CHAT[1]})
    assert shown(second) == [("system", [("c1", "one"), ("c2", "two")])]
    made.answered(key, said("done"))
    third, _ = made.asked("openai-chat", {"messages": CHAT[0] + CHAT[1] + CHAT[2]})
    assert shown(third) == [("user", "more")]


def test_messages_keep_results_apart_from_words() -> None:
    made = recorder()
    first, key = made.asked("anthropic", {"system": "be brief", "messages": MESSAGES[0]})
    assert shown(first) == [("system", "be brief"), ("user", "do it")]
    made.answered(key, said("", ToolCall("c1", "t", "{}")))
    again = {"system": "be brief", "messages": MESSAGES[0] + MESSAGES[1]}
    assert shown(made.asked("anthropic", again)[0]) == [
        ("system", [("c1", "one"), ("c2", "")]),
        ("user", "and hurry"),
    ]


def test_responses_items_become_results() -> None:
    made = recorder()
    first, key = made.asked("openai-responses", {"instructions": "be brief", "input": RESPONSES[0]})
    assert shown(first) == [("system", "be brief"), ("user", "do it")]
    made.answered(key, said("", ToolCall("c1", "t", "{}")))
    second, _ = made.asked("openai-responses", {"input": RESPONSES[0] + RESPONSES[1]})
    assert shown(second) == [("system", [("c1", "one")])]


def test_a_response_that_goes_on_from_another_is_new() -> None:
    made = recorder()
    assert shown(made.asked("openai-responses", {"input": "hello"})[0]) == [("user", "hello")]
    later = {"input": "hello", "previous_response_id": "resp_1"}
    assert shown(made.asked("openai-responses", later)[0]) == [("user", "hello")]
    assert made.asked("openai-responses", later)[0] == []


def test_a_call_that_is_made_again_adds_nothing() -> None:
    made = recorder()
    made.asked("openai-chat", {"messages": CHAT[0]})
    assert made.asked("openai-chat", {"messages": CHAT[0]})[0] == []


def test_cache_marks_that_move_do_not_make_messages_new() -> None:
    made = recorder()
    marked = {"type": "text", "text": "do it", "cache_control": {"type": "ephemeral"}}
    _, key = made.asked("anthropic", {"messages": [{"role": "user", "content": [marked]}]})
    made.answered(key, said("ok"))
    messages = [
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": [{**marked, "text": "more"}]},
    ]
    assert shown(made.asked("anthropic", {"messages": messages})[0]) == [("user", "more")]


def test_sub_agents_that_take_turns_do_not_disturb_each_other() -> None:
    made = recorder()
    talks: dict[str, list[Any]] = {
        name: [{"role": "user", "content": f"task of {name}"}] for name in "abc"
    }
    seen = []
    for turn in range(4):
        for name, talk in talks.items():
            steps, key = made.asked("openai-chat", {"messages": list(talk)})
            seen += [message for _, message in shown(steps)]
            made.answered(key, said(f"{name}{turn}"))
            talk.append({"role": "assistant", "content": f"{name}{turn}"})
            talk.append({"role": "user", "content": f"{name} goes on {turn}"})
    assert seen == [f"task of {n}" for n in "abc"] + [
        f"{n} goes on {turn}" for turn in range(3) for n in "abc"
    ]


def test_words_put_into_the_models_mouth_are_marked() -> None:
    made = recorder()
    messages = [
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "4", "tool_calls": [{"function": {"name": "f"}}]},
        {"role": "user", "content": "3+3?"},
    ]
    steps, _ = made.asked("openai-chat", {"messages": messages})
    assert shown(steps) == [("user", "2+2?"), ("agent", "4"), ("user", "3+3?")]
    assert steps[1].extra == {"given": True}
    assert steps[1].tool_calls[0].name == "f"


def test_results_are_kept_once_though_the_conversation_is_shortened() -> None:
    made = recorder()
    _, key = made.asked("openai-chat", {"messages": CHAT[0] + CHAT[1]})
    made.answered(key, said("done"))
    short = [{"role": "user", "content": "a summary"}, *CHAT[1][1:]]
    assert shown(made.asked("openai-chat", {"messages": short})[0]) == [("user", "a summary")]


def test_long_texts_are_cut_and_say_so() -> None:
    made = recorder(100)
    steps, key = made.asked("openai-chat", {"messages": [{"role": "user", "content": "ü" * 9000}]})
    assert steps[0].message.startswith("ü" * 50)
    assert steps[0].message.endswith("[… cut: 18000 bytes in all]")
    assert len(steps[0].message.encode()) < 200
    step = made.answered(key, said("x" * 500, ToolCall("c", "t", "y" * 500)))
    assert len(step.message) < 200
    assert len(step.tool_calls[0].arguments) < 200


def test_of_a_secret_at_the_cut_nothing_is_kept() -> None:
    def redact(data: bytes) -> bytes:
        return data.replace(b"SECRETSECRET", b"[redacted]")

    made = recorder(100, redact)
    for before in range(80, 105):
        text = "x" * before + "SECRETSECRET" + "y" * 5000
        steps, _ = made.asked("openai-chat", {"messages": [{"role": "user", "content": text}]})
        assert "SEC" not in steps[0].message, before


def test_every_text_of_a_step_is_redacted() -> None:
    def redact(data: bytes) -> bytes:
        return data.replace(b"hunter2", b"*")

    made = recorder(redact=redact)
    messages = [
        {"role": "system", "content": "hunter2"},
        {"role": "user", "content": "hunter2"},
        {"role": "tool", "tool_call_id": "hunter2", "content": "hunter2"},
    ]
    steps, key = made.asked("openai-chat", {"messages": messages})
    reading = Reading(
        "hunter2",
        (ToolCall("hunter2", "hunter2", '{"a":"hunter2"}'),),
        "hunter2",
        None,
        "hunter2",
        "hunter2",
    )
    end = CallEnd("anthropic", reading, None, 0.1, fault="hunter", fault_message="hunter2")
    steps.append(made.answered(key, end))
    assert "hunter2" not in json.dumps([step.as_json() for step in steps])


def test_images_are_named_by_type_and_size() -> None:
    made = recorder()
    data = "A" * 5000
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": data}},
        {"type": "input_audio", "input_audio": {"data": data}},
    ]
    steps, _ = made.asked("openai-chat", {"messages": [{"role": "user", "content": parts}]})
    lines = steps[0].message.split("\n")
    assert lines[0] == "look"
    assert lines[1].startswith("[image/png, 50")
    assert lines[2].startswith("[image/gif, 50")
    assert lines[3].startswith("[input_audio, 50")


def test_messages_without_text_cannot_fill_the_disk_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_RECORDED_BYTES", 50 * recording.STEP_BYTES)
    made = recorder(1000)
    count = 0
    for n in range(20):
        messages = [{"role": "user", "content": ""}, {"role": "user", "content": str(n)}] * 10
        steps, key = made.asked("openai-chat", {"messages": messages[n % 2 :]})
        count += len(steps)
        assert made.answered(key, said("")).usage == Usage(requests=1)
    assert 40 <= count < 50


def test_what_an_attempt_records_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MAX_RECORDED_BYTES", 2000)
    monkeypatch.setattr(recording, "MAX_STEPS_A_CALL", 50)
    monkeypatch.setattr(recording, "STEP_BYTES", 10)
    made = recorder(1000)
    messages = [{"role": "user", "content": f"{n} " + "x" * 500} for n in range(200)]
    steps, key = made.asked("openai-chat", {"messages": messages})
    assert 3 <= len(steps) <= 51
    assert "cut" in steps[-1].message
    assert sum(len(step.message) for step in steps) < 2000 + 51 * 40
    step = made.answered(key, said("answer"))
    assert step.usage == Usage(requests=1)


def test_a_failed_call_is_a_step_with_its_cause() -> None:
    made = recorder()
    end = CallEnd(
        "anthropic", None, None, 1.5, 2, "model_unavailable", "it answered 503", is_stream=True
    )
    step = made.answered(0, end)
    assert (step.source, step.message, step.usage) == ("agent", "", None)
    assert step.extra == {
        "protocol": "anthropic",
        "duration_s": 1.5,
        "stream": True,
        "retries": 2,
        "fault": "model_unavailable",
        "fault_message": "it answered 503",
    }


def test_observations_go_to_the_step_whose_calls_they_answer() -> None:
    call = ToolCall("c1", "t", "{}")
    result, stray = ToolResult("c1", "one"), ToolResult(None, "?")
    steps = [
        Step("user", "do it"),
        Step("agent", "", tool_calls=(call,)),
        Step("agent", "meanwhile"),
        Step("system", "", results=(result, stray)),
        Step("system", "", results=(ToolResult("c1", "again"),)),
    ]
    assert with_observations(steps) == [
        steps[0],
        Step("agent", "", tool_calls=(call,), results=(result, ToolResult("c1", "again"))),
        steps[2],
        Step("system", "", results=(stray,)),
    ]


NAMES = st.sampled_from(
    [
        "role",
        "content",
        "type",
        "text",
        "tool_calls",
        "function",
        "name",
        "id",
        "output",
        "source",
        "image_url",
        "url",
        "tool_use_id",
        "call_id",
        "input",
        "arguments",
        "thinking",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=15,
)
ROLES = st.sampled_from(["user", "assistant", "tool", "system", "developer", "x"])


@given(
    protocol=st.sampled_from(["openai-chat", "openai-responses", "anthropic"]),
    items=JSON | st.lists(st.dictionaries(NAMES, JSON), max_size=4),
    role=ROLES,
    system=JSON,
)
@settings(deadline=None, max_examples=60)
def test_no_conversation_makes_a_recorder_stumble(
    protocol: str, items: Any, role: str, system: Any
) -> None:
    if isinstance(items, list):
        items = [{**one, "role": role} if isinstance(one, dict) else one for one in items]
    made = recorder()
    data = {"messages": items, "input": items, "system": system, "instructions": system}
    steps, key = made.asked(protocol, data)
    steps.append(made.answered(key, said("x")))
    for step in steps:
        assert Step.from_json(json.loads(json.dumps(step.as_json()))) == step
    assert made.asked(protocol, data)[0] == []


def test_what_is_nested_too_deeply_is_named_and_not_recorded() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    steps, _ = recorder().asked("openai-chat", {"messages": [{"role": "user", "content": deep}]})
    assert "nested" in steps[0].message
