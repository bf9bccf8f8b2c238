"""A trajectory as text, for validators with `on: trajectory`. Pure, and the same each time.

It begins with the agent's own first step: what stands before it is the prompt, which would let a
validator find its own words. Each step is headed by its number among those that follow:

    [1] agent
    I look it up.
    [1] call search {"query": "refunds"}
    [1] result
    Refunds take five days.

A line of a text that looks like such a heading is moved in by a space: what an agent says, or says
that its tools gave it, heads no step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import Final

from steelyard.components.steps import Step

MAX_PART_CHARS: Final = 64 * 1024
"""Of one message, call or result; what is longer loses its middle."""
_HEADING: Final = re.compile(r"(^|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029])(\[\d)")
"""At the beginning of whatever anybody takes for a line."""
MAX_CHARS: Final = 1024 * 1024
"""Of the whole."""


def trajectory_text(steps: Sequence[Step]) -> str | None:
    """Write what the agent said, called and was given; None where it did nothing."""
    done = list(dropwhile(lambda step: not is_agents_own(step), steps))
    if not done:
        return None
    return _shortened("\n".join(_lines(done)), MAX_CHARS)


def is_agents_own(step: Step) -> bool:
    """True where the model said it in this attempt.

    Steps marked as given are examples of the prompt, or words that a program put into its model's
    mouth: neither may count as what the agent did.
    """
    return step.source == "agent" and step.extra.get("given") is not True


def _lines(steps: Sequence[Step]) -> Iterator[str]:
    shown = (step for step in steps if step.source != "agent" or is_agents_own(step))
    for number, step in enumerate(shown, 1):
        if step.message or not (step.tool_calls or step.results):
            yield f"[{number}] {step.source}"
            yield _headless(_shortened(step.message, MAX_PART_CHARS))
        for call in step.tool_calls:
            arguments = _shortened(call.arguments, MAX_PART_CHARS)
            yield f"[{number}] call {_headless(f'{call.name} {arguments}')}"
        for result in step.results:
            yield f"[{number}] result"
            yield _headless(_shortened(result.content, MAX_PART_CHARS))


def _headless(text: str) -> str:
    return _HEADING.sub(r"\1 \2", text)


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n…{text[-half:]}"
