"""A model that does the greeting job in a shell, in all protocols; for `mock-model --function`."""

from __future__ import annotations

import json
from typing import Any

COMMANDS = (
    "cat note.txt; export WHAT=hello",
    'sed -i "s/helo/$WHAT/" note.txt && uname -s > system.txt',
    "cat note.txt system.txt",
)
DONE = "The greeting is mended."


def answer(call: dict[str, Any]) -> Any:
    """Ask for the next command, by tool or fence as the request offers; then be done."""
    body = call["body"]
    if "GREETING-JOB" not in json.dumps(body):
        return "not my job"
    if not body.get("tools"):
        return fenced(body, call["protocol"])
    done = results_in(body, call["protocol"])
    if done < len(COMMANDS):
        return {
            "answer": f"Step {done + 1}.",
            "reasoning": "thinking of it",
            "tool_calls": [{"name": "run", "arguments": {"command": COMMANDS[done]}}],
        }
    return {"tool_calls": [{"name": "done", "arguments": {"answer": DONE}}]}


def fenced(body: dict[str, Any], protocol: str) -> str:
    turns = body["input"] if protocol == "openai-responses" else body["messages"]
    done = sum(turn.get("role") == "assistant" for turn in turns)
    if done < len(COMMANDS):
        return f"I go on.\n```bash\n{COMMANDS[done]}\n```"
    return f"<done>{DONE}</done>"


def results_in(body: dict[str, Any], protocol: str) -> int:
    if protocol == "openai-responses":
        return sum(item.get("type") == "function_call_output" for item in body["input"])
    if protocol == "openai-chat":
        return sum(message["role"] == "tool" for message in body["messages"])
    return sum(
        block.get("type") == "tool_result"
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    )
