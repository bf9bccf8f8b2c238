"""The real package, in a Python that is new enough: made once a machine, shared by all workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from steelyard.harnesses.terminus2 import interpreter
from steelyard.harnesses.terminus2.params import VERSION
from tests.containers.images import cache_folder

DATA_DIR = cache_folder()
HOME = interpreter.Home(VERSION, DATA_DIR)


def installed() -> Path:
    """Give the interpreter, made where it is not there yet.

    Raises:
        NotInstalled: this machine has no Python 3.12; how it gets one is said with it.
    """
    return interpreter.install(HOME, timeout_s=900)


def typed(*keys: str, duration: float = 0.2, done: bool = False, plan: str = "I go on.") -> str:
    """Give an answer in Terminus' JSON form."""
    commands = [{"keystrokes": one, "duration": duration} for one in keys]
    said: dict[str, Any] = {"analysis": "", "plan": plan, "commands": commands}
    return json.dumps({**said, "task_complete": done})


DONE = typed(done=True, plan="It is done.")
