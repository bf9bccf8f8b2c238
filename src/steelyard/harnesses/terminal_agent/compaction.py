"""Make a conversation shorter: the model sums up its middle, the beginning and the end stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steelyard.components.model import AssistantTurn, ModelClient, ModelRequest, ToolTurn, Turn
from steelyard.components.values import Message

_ASK: Final = (
    "The conversation grows too long and is cut here. Write down for yourself all that is needed "
    "to go on: what was found, what was changed, what failed, what is left to do. Do not repeat "
    "the task. Answer with the notes alone."
)
_NOTES: Final = "Notes on what was done before (the conversation up to here was cut):\n\n"
MAX_QUOTED_CHARS: Final = 2_000
"""Of each turn in what is summed up."""


def split(turns: Sequence[Turn], head: int, kept_turns: int) -> tuple[list[Turn], list[Turn]]:
    """Part what is summed up from what stays, behind the `head` first messages.

    A tool's result is never parted from the call that it answers.
    """
    start = max(head, len(turns) - 2 * kept_turns)
    while start < len(turns) and not _opens(turns[start]):
        start += 1
    return list(turns[head:start]), list(turns[start:])


def _opens(turn: Turn) -> bool:
    """True where the conversation may go on with this turn after the notes."""
    return turn.role == "assistant"


async def compacted(
    model: ModelClient, turns: Sequence[Turn], *, head: int, kept_turns: int
) -> list[Turn] | None:
    """Give the shorter conversation; None where nothing is left to be summed up.

    The turns that are summed up are told as text, so that the call needs no tools.

    Raises:
        AttemptFault: as `ModelClient.generate`.
    """
    middle, rest = split(turns, head, kept_turns)
    if not middle:
        return None
    told = "\n\n".join(_told(turn) for turn in middle)
    asked = [*turns[:head], Message("user", f"{told}\n\n{_ASK}")]
    notes = await model.generate(ModelRequest(_alternating(asked)))
    return [
        *_alternating([*turns[:head], Message("user", _NOTES + notes.text)]),
        *rest,
    ]


def _told(turn: Turn) -> str:
    if isinstance(turn, ToolTurn):
        return "RESULT: " + turn.content[:MAX_QUOTED_CHARS]
    if isinstance(turn, AssistantTurn):
        calls = [f"{call.name}({call.arguments[:MAX_QUOTED_CHARS]})" for call in turn.tool_calls]
        return "YOU: " + " ".join([turn.content[:MAX_QUOTED_CHARS], *calls])
    who = "YOU" if turn.role == "assistant" else "SHOWN"
    return f"{who}: {turn.content[:MAX_QUOTED_CHARS]}"


def _alternating(turns: Sequence[Turn]) -> list[Turn]:
    """Join user messages that follow each other: some endpoints refuse two of them."""
    joined: list[Turn] = []
    for turn in turns:
        last = joined[-1] if joined else None
        if isinstance(turn, Message) and isinstance(last, Message) and turn.role == last.role:
            joined[-1] = Message(turn.role, f"{last.content}\n\n{turn.content}")
        else:
            joined.append(turn)
    return joined
