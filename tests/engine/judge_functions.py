"""Judges for the mock endpoint, given to it as `FILE:function`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_CODE = re.compile(r'"code" is "([^"]+)"')
_KEY = "sk-judge-0123456789abcdef"


def judge(call: Mapping[str, Any]) -> str:
    """Say whether the work holds `right`; answer everything else with `right`."""
    system = "\n".join(m["content"] for m in call["messages"] if m["role"] == "system")
    code = _CODE.search(system)
    if code is None:
        return "right"
    # It repeats the key it was called with, as a confused endpoint might.
    words = f"It {'holds' if 'right' in call['prompt'] else 'lacks'} the word. {_KEY}"
    verdict = {"code": code[1], "reason": words, "verdict": "right" in call["prompt"]}
    return json.dumps(verdict)


def nonsense(call: Mapping[str, Any]) -> str:
    """Answer with the agent's answer, and with no verdict."""
    return "right"
