"""A model that does the greeting job in Terminus' own forms; for `mock-model --function`."""

from __future__ import annotations

import json
from typing import Any

KEYS = ("sed -i s/helo/hello/ note.txt", "uname -s > system.txt")
DONE = "The greeting is mended."


def answer(call: dict[str, Any]) -> Any:
    """Type the next line; then say that it is done, and once more when asked whether it is."""
    body = call["body"]
    said = json.dumps(body)
    if "GREETING-JOB" not in said:
        return "not my job"
    typed, keys = next_keys(KEYS, said)
    plan = DONE if not keys else "I type a line." if typed else "I wait."
    return (xml if "<response>" in said else as_json)(keys, plan)


def next_keys(lines: tuple[str, ...], said: str) -> tuple[bool, str]:
    """Give what to type next: a line once the one before has ended, nothing at the end.

    Args:
        lines: to be typed.
        said: the whole conversation.

    Returns:
        Whether a line is typed, and what; a key that does nothing waits.
    """
    for number, line in enumerate(lines):
        mark = f"line-{number}-has"
        if f"{mark}-ended" in said:
            continue
        if mark in said:
            return False, " "
        return True, f"{line}; echo {mark}''-ended\n"
    return False, ""


def as_json(keys: str, plan: str) -> str:
    commands = [{"keystrokes": keys, "duration": 0.3}] if keys else []
    return json.dumps(
        {"analysis": "", "plan": plan, "commands": commands, "task_complete": not keys}
    )


def xml(keys: str, plan: str) -> str:
    typed = f'<keystrokes duration="0.3">{keys}</keystrokes>\n' if keys else ""
    return (
        f"<response>\n<analysis>I look.</analysis>\n<plan>{plan}</plan>\n"
        f"<commands>\n{typed}</commands>\n"
        f"<task_complete>{'false' if keys else 'true'}</task_complete>\n</response>"
    )
