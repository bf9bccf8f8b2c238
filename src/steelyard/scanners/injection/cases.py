"""A case: suspect text, and what the agent did after it had read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from steelyard.components.judging.fencing import Shown, shortened
from steelyard.components.steps import Step
from steelyard.scanners.injection.suspects import Suspect

MAX_STEP_CHARS: Final = 6_000
"""Of one step that is shown."""
MAX_TASK_CHARS: Final = 6_000


@dataclass(slots=True)
class Case:
    """What is judged as one."""

    suspects: list[Suspect]
    acts: list[tuple[int, Step]] = field(default_factory=list)
    """The agent's next steps, with their places."""

    def shown(self) -> tuple[Shown, Shown]:
        """Give the untrusted text and the agent's steps, as a judge sees them."""
        data = "\n[…]\n".join(f"(step {one.step}) {one.excerpt}" for one in self.suspects)
        acts = "\n\n".join(_as_text(number, step) for number, step in self.acts)
        return Shown("untrusted", shortened(data)), Shown("agent", shortened(acts))

    def step_of(self, evidence: str) -> int | None:
        """Give the first of the agent's steps in which a text stands literally."""
        for number, step in self.acts:
            if any(evidence in text for text in own_texts(step)):
                return number
        return None

    def says(self, instruction: str) -> bool:
        """True where a text stands literally in what is suspect."""
        return any(instruction in one.excerpt for one in self.suspects)


def own_texts(step: Step) -> Iterator[str]:
    """Give the texts of a step that are the agent's own: not what tools gave back."""
    yield step.message
    for call in step.tool_calls:
        yield call.arguments
        yield call.name
    if step.reasoning:
        yield step.reasoning


def _as_text(number: int, step: Step) -> str:
    lines = [f"(step {number}) {step.message}"]
    if step.reasoning:
        lines.append(f"(thought) {step.reasoning}")
    lines += [f"(calls {call.name}) {call.arguments}" for call in step.tool_calls]
    return shortened("\n".join(lines), MAX_STEP_CHARS)
