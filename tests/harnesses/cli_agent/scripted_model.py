"""A model that does the greeting job by each agent's own tools; for `mock-model --function`."""

from __future__ import annotations

import json
import re
from typing import Any

PATCH = """apply_patch <<'EOF'
*** Begin Patch
*** Update File: note.txt
@@
-helo
+hello
*** End Patch
EOF"""
COMMAND = "uname -s >system.txt && cat system.txt"
DONE = "The greeting is mended."
_FOLDER = re.compile(r"Primary working directory: (\S+?)(?:\\n|\n|\")")


def answer(call: dict[str, Any]) -> Any:
    """Give the next turn of the job, in the words of whichever agent asks."""
    said = json.dumps(call["body"])
    if "GREETING-JOB" not in said or not call["body"].get("tools"):
        return "a title"
    turns = {"anthropic": _claude, "openai-responses": _codex, "openai-chat": _mini}
    steps = turns[call["protocol"]](said, call["body"])
    return steps[min(_done(call), len(steps) - 1)]


def _done(call: dict[str, Any]) -> int:
    """How many tools have answered: by that codex and the others count alike."""
    body = call["body"]
    if call["protocol"] == "openai-responses":
        return sum(item.get("type") == "function_call_output" for item in body["input"])
    if call["protocol"] == "openai-chat":
        return sum(message["role"] == "tool" for message in body["messages"])
    return sum(
        block.get("type") == "tool_result"
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    )


def _claude(said: str, _body: Any) -> list[Any]:
    folder = found[1] if (found := _FOLDER.search(said)) else "/workspace"
    note = f"{folder}/note.txt"
    return [
        _use("Read", {"file_path": note}, answer="I look at it first."),
        _use("Edit", {"file_path": note, "old_string": "helo", "new_string": "hello"}),
        _use("Bash", {"command": COMMAND, "description": "write the system's name"}),
        DONE,
    ]


def _codex(_said: str, _body: Any) -> list[Any]:
    return [
        _use("exec_command", {"cmd": PATCH}, answer="I mend it.", reasoning="a small patch"),
        _use("exec_command", {"cmd": COMMAND}),
        DONE,
    ]


def _mini(_said: str, _body: Any) -> list[Any]:
    end = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo mended"
    return [
        _use("bash", {"command": "sed -i s/helo/hello/ note.txt"}, answer="I mend it."),
        _use("bash", {"command": COMMAND}, answer="Now the system."),
        _use("bash", {"command": end}, answer=DONE),
    ]


def _use(name: str, arguments: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}], **more}
