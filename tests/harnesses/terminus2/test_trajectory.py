"""Steps of the package's own trajectory become ours."""

from __future__ import annotations

import json

from steelyard.components.model import ToolCall
from steelyard.components.steps import ToolResult
from steelyard.harnesses.terminus2.trajectory import step_of


def test_a_step_keeps_its_calls_what_they_brought_and_its_reasoning() -> None:
    step = step_of(
        {
            "step_id": 2,
            "source": "agent",
            "message": "Plan: look",
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "tool_call_id": "call_0_1",
                    "function_name": "bash_command",
                    "arguments": {"keystrokes": "ls\n", "duration": 0.1},
                }
            ],
            "observation": {
                "results": [{"source_call_id": "call_0_1", "content": "a.txt"}, {"content": "more"}]
            },
        }
    )
    (call,) = step.tool_calls
    assert call == ToolCall("call_0_1", "bash_command", call.arguments)
    assert json.loads(call.arguments) == {"keystrokes": "ls\n", "duration": 0.1}
    assert step.results == (ToolResult("call_0_1", "a.txt"), ToolResult(None, "more"))
    assert (step.source, step.message, step.reasoning) == ("agent", "Plan: look", "hm")


def test_a_reference_without_text_is_no_observation() -> None:
    data = {
        "source": "system",
        "message": "Performed context summarization.",
        "extra": {"context_management": {"type": "compaction"}},
        "observation": {"results": [{"subagent_trajectory_ref": [{"trajectory_id": "x"}]}]},
    }
    step = step_of(data)
    assert step.results == ()
    assert step.extra == {"context_management": {"type": "compaction"}}


def test_a_summarising_call_is_marked_with_its_name() -> None:
    step = step_of({"source": "user", "message": [{"type": "text", "text": "sum up"}]}, "summary")
    assert (step.message, step.extra) == ("sum up", {"subagent": "summary"})
