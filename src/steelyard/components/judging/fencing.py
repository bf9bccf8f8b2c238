"""Show a judge what may be hostile: texts between marks, cut to a size. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from steelyard.components.values import Message

MAX_SHOWN_CHARS: Final = 100_000
"""Of each text that a judge is shown; what is longer loses its middle."""

_MAX_REPLY_SHOWN: Final = 2000


@dataclass(frozen=True, slots=True)
class Shown:
    """A text that the judge is shown, under a name."""

    name: str
    """`task`, `reference`, `work`, or a file's path."""
    text: str


def asked_again(reply: str, fault: str) -> tuple[Message, Message]:
    """Write the judge's own reply, then what was wrong with it.

    An empty reply stands as a remark: endpoints refuse empty messages.
    """
    shown = reply[:_MAX_REPLY_SHOWN].strip() or "(no text)"
    return (
        Message("assistant", shown),
        Message(
            "user",
            f"That is not a valid answer: {fault}. Answer once more, with the JSON object that "
            "the instructions ask for and nothing else.",
        ),
    )


def shortened(text: str, limit: int = MAX_SHOWN_CHARS) -> str:
    """Cut the middle out of a text that is longer than `limit` characters, and say so there.

    What cannot be sent, lone surrogates, becomes `?`.
    """
    if len(text) <= limit:
        return text.encode("utf-8", "replace").decode("utf-8")
    head, tail = limit // 2, limit - limit // 2
    left_out = len(text) - limit
    kept = f"{text[:head]}\n[… {left_out} characters are left out here …]\n{text[-tail:]}"
    return kept.encode("utf-8", "replace").decode("utf-8")


def fenced(item: Shown, mark: str) -> str:
    """Give a text between lines with a mark that its author could not know."""
    return f"[{mark} begin: {item.name}]\n{item.text}\n[{mark} end: {item.name}]"
