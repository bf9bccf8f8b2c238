"""A model that does the greeting job in Terminus' own forms; for `mock-model --function`."""

from __future__ import annotations

import json
from typing import Any

KEYS = (
    "sed -i s/helo/hello/ note.txt\n",
    "uname -s > system.txt\n",
)
DONE = "The greeting is mended."


def answer(call: dict[str, Any]) -> Any:
    """Type the next line; then say that it is done, and once more when asked whether it is."""
    body = call["body"]
    said = json.dumps(body)
    if "GREETING-JOB" not in said:
        return "not my job"
    turn = turns_in(body)
    keys = KEYS[turn : turn + 1]
    if "<response>" in said:
        return xml(keys, turn)
    return as_json(keys, turn)


def as_json(keys: tuple[str, ...], turn: int) -> str:
    return json.dumps(
        {
            "analysis": f"Turn {turn + 1}.",
            "plan": DONE if not keys else "I type a line.",
            "commands": [{"keystrokes": key, "duration": 0.3} for key in keys],
            "task_complete": not keys,
        }
    )


def xml(keys: tuple[str, ...], turn: int) -> str:
    typed = "".join(f'<keystrokes duration="0.3">{key}</keystrokes>\n' for key in keys)
    return (
        f"<response>\n<analysis>Turn {turn + 1}.</analysis>\n<plan>{DONE}</plan>\n"
        f"<commands>\n{typed}</commands>\n"
        f"<task_complete>{'false' if keys else 'true'}</task_complete>\n</response>"
    )


def turns_in(body: dict[str, Any]) -> int:
    turns = body["input"] if isinstance(body.get("input"), list) else body["messages"]
    return sum(turn.get("role") == "assistant" for turn in turns)
