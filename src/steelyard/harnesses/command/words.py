"""From a task's messages and what people wrote to the words and variables of a program. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from steelyard.components.values import Message

FIELDS: Final = (
    "prompt", "prompt_file", "system", "system_file", "files", "model", "url", "token", "workdir",
    "home",
)  # fmt: skip
MODEL_FIELDS: Final = frozenset({"model", "url", "token"})
MAX_WORD_BYTES: Final = 120_000
"""Linux takes 128 KiB for one word or variable."""

_FIELD: Final = re.compile(r"\{\{(?P<literal>%s)\}\}|\{(?P<name>%s)\}" % (("|".join(FIELDS),) * 2))


def filled(word: str, values: Mapping[str, str]) -> str:
    """Replace the fields of a word, in one pass: what stands in a value is never replaced.

    Raises:
        KeyError: a field that has no value here.
    """

    def value(found: re.Match[str]) -> str:
        name = found["name"]
        return f"{{{found['literal']}}}" if name is None else values[name]

    return _FIELD.sub(value, word)


def fields_of(words: Sequence[str]) -> set[str]:
    """Give the names of the fields that words ask for."""
    return {found["name"] for word in words for found in _FIELD.finditer(word) if found["name"]}


def prompt_of(messages: Sequence[Message], *, with_system: bool) -> str:
    """Join a task's messages to one text.

    A single turn goes as it is; of several, each says who spoke. System messages stand before.
    """
    turns = [message for message in messages if message.role != "system"]
    text = turns[0].content if len(turns) == 1 else "\n\n".join(map(_spoken, turns))
    system = system_of(messages) if with_system else ""
    return f"{system}\n\n{text}" if system and text else system or text


def system_of(messages: Sequence[Message]) -> str:
    """Join the system messages; empty where there is none."""
    return "\n\n".join(message.content for message in messages if message.role == "system")


def _spoken(message: Message) -> str:
    return f"[{message.role}]\n{message.content}"


def unusable_word(words: Sequence[str]) -> str | None:
    """Say why a program cannot be handed these words or variables; None where it can."""
    for word in words:
        if "\0" in word:
            return "holds a NUL byte"
        size = len(word.encode("utf-8", "surrogatepass"))
        if size > MAX_WORD_BYTES:
            return f"makes a word of {size} bytes, and a program takes {MAX_WORD_BYTES}"
    return None


def tail(data: bytes, limit: int) -> str:
    """Give the last bytes as text; what was left out is said."""
    if len(data) <= limit:
        return data.decode("utf-8", "replace")
    left_out = len(data) - limit
    return f"[{left_out} bytes left out]\n" + data[-limit:].decode("utf-8", "replace")
