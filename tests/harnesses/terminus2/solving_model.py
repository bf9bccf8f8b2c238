"""A model that knows the example tasks' solutions, and types them; for `mock-model --function`."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

_spec = importlib.util.spec_from_file_location(
    "scripted", Path(__file__).with_name("scripted_model.py")
)
assert _spec is not None
assert _spec.loader is not None
_scripted = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_scripted)
as_json, next_keys = _scripted.as_json, _scripted.next_keys
TASKS = Path(__file__).parents[3] / "examples" / "harbor"


def answer(call: dict[str, Any]) -> str:
    """Type the solution of the task that is told of, then say twice that it is done."""
    messages = call["body"]["messages"]
    told = messages[0]["content"]
    (task,) = (
        path.parent for path in TASKS.glob("*/instruction.md") if path.read_text().strip() in told
    )
    solution = (task / "solution" / "solve.sh").read_text()
    lines = (f"cat >/tmp/mine.sh <<'END-OF-MINE'\n{solution}\nEND-OF-MINE\nsh /tmp/mine.sh",)
    _typed, keys = next_keys(lines, json.dumps(messages))
    return as_json(keys, "as I know it")
