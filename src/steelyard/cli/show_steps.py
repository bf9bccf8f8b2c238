"""What an agent was told and what it did, step by step, for `show`. Pure.

Trajectories may be anyone's: every field is read as whatever it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from steelyard.components.steps import Step

SHOWN_STEPS: Final = 20
"""Of those after the prompt; of more, the first and the last half."""
SHOWN_CHARS: Final = 2_000
"""Of one call, result or text within a step."""
_OF_PROGRAM: Final = "exit_code"
"""What only the last step of a program has: how it ended is no prompt."""

_WHY: Final = ("verdict", "reason")
"""What scorers that have one reason call it."""

Block = tuple[str, str]
"""A title and a text, which may be empty."""


def parted(steps: Sequence[Step]) -> tuple[list[Step], list[tuple[int, Step]]]:
    """Part steps into the prompt and what followed, the latter with their numbers from 1."""
    prompt: list[Step] = []
    for step in steps:
        if step.source == "agent" or step.results or _OF_PROGRAM in step.extra:
            break
        prompt.append(step)
    return prompt, list(enumerate(steps, 1))[len(prompt) :]


def step_blocks(numbered: Sequence[tuple[int, Step]], answer: str | None) -> Iterator[Block]:
    """Give a title and a text for each thing in the steps after the prompt.

    Args:
        numbered: the steps, each with its number in the trajectory.
        answer: shown by itself; a step that says the same only says so.
    """
    half = SHOWN_STEPS // 2
    cut = len(numbered) - 2 * half if len(numbered) > SHOWN_STEPS else 0
    for place, (number, step) in enumerate(numbered):
        if not cut or place < half or place >= half + cut:
            yield from _blocks(f"step {number}", step, answer)
        elif place == half:
            yield f"steps {number} to {number + cut - 1} are in the trajectory", ""


def _blocks(title: str, step: Step, answer: str | None) -> Iterator[Block]:
    name = f"{title} ({step.source})"
    if _OF_PROGRAM in step.extra:
        yield f"{title}: {step.message}", ""
        for stream in ("stdout", "stderr"):
            text = _text(step.extra.get(stream) or "")
            if text.strip() and not _is_same(text, answer):
                yield f"{title}, {stream}", _short(text)
        return
    if step.reasoning:
        yield f"{name}, reasoning", _short(step.reasoning)
    if step.message and _is_same(step.message, answer):
        yield f"{name}: the answer", ""
    elif step.message or not (step.tool_calls or step.results):
        yield name, _short(step.message)
    for call in step.tool_calls:
        yield f"{title}, call of {call.name}", _short(call.arguments)
    for result in step.results:
        yield f"{title}, result", _short(result.content)


def prompt_json(prompt: Sequence[Step]) -> list[dict[str, str]]:
    """Give the messages of a prompt."""
    return [{"source": step.source, "message": step.message} for step in prompt]


def _is_same(text: str, answer: str | None) -> bool:
    return answer is not None and bool(answer.strip()) and text.strip() == answer.strip()


def _short(text: str) -> str:
    if len(text) <= SHOWN_CHARS:
        return text
    return f"{text[:SHOWN_CHARS]}\n… and {len(text) - SHOWN_CHARS} more characters"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def reasons(details: Mapping[str, Any]) -> list[Block]:
    """Give what the scorer said: its reasons, then what else it noted."""
    said = details.get("reasons")
    found = [(f"why: {k}", _text(v)) for k, v in said.items()] if isinstance(said, dict) else []
    for key, value in details.items():
        text = _text(value)
        if key in _WHY:
            # `AssertionError:` of an assertion without words
            found.append((f"why: {key}", text.rstrip().removesuffix(":")))
        elif key != "reasons":
            found.append((f"noted: {key}", text))
    return found
