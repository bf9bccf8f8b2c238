"""Find the code in what a model says."""

from __future__ import annotations

import re
from typing import Final

# Fences of three or more back-ticks or tildes, at most three spaces in, as CommonMark has them.
# One line at a time, without nested repetition: linear in the answer's length.
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)$")


def fenced_blocks(answer: str) -> list[str]:
    """List the contents of the fenced code blocks, in order; an unclosed one runs to the end."""
    blocks: list[str] = []
    lines: list[str] | None = None
    fence = ""
    for line in answer.split("\n"):
        match = _FENCE.match(line.rstrip("\r"))
        if lines is None:
            if match:
                fence, lines = match[1], []
        elif match and match[1].startswith(fence) and not match[2].strip():
            blocks.append("\n".join(lines))
            lines = None
        else:
            lines.append(line)
    if lines is not None:
        blocks.append("\n".join(lines))
    return blocks


def python_code(answer: str, entry_point: str | None) -> str | None:
    """Give the last fenced block that defines `entry_point`, else the last block; None without."""
    blocks = fenced_blocks(answer)
    if not blocks:
        return None
    if entry_point is not None:
        for block in reversed(blocks):
            if defines(block, entry_point):
                return block
    return blocks[-1]


def defines(code: str, name: str) -> bool:
    """True where a line of the code defines the function, at the left margin."""
    return re.search(rf"^(?:async )?def {re.escape(name)}\b", code, re.MULTILINE) is not None
