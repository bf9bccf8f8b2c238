"""How a model is told of the shell and asks for commands: by tools, or in fences. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from steelyard.components.model import (
    AssistantTurn,
    ModelResponse,
    Tool,
    ToolCall,
    ToolTurn,
    Turn,
)
from steelyard.components.values import Message

RUN: Final = "run"
DONE: Final = "done"

TOOLS: Final = (
    Tool(
        RUN,
        "Run a command in the shell and see what it prints and its exit code.",
        MappingProxyType(
            {
                "type": "object",
                "properties": {"command": {"type": "string", "description": "Shell text."}},
                "required": ["command"],
                "additionalProperties": False,
            }
        ),
    ),
    Tool(
        DONE,
        "Say that the task is finished. Nothing can be done after it.",
        MappingProxyType(
            {
                "type": "object",
                "properties": {
                    "answer": {
                        "type": "string",
                        "description": "The answer, where the task asks for one; else one line.",
                    }
                },
                "required": ["answer"],
                "additionalProperties": False,
            }
        ),
    ),
)

_ABOUT_SHELL: Final = (
    "You work on a task in a Linux shell. Folder and exported variables last from one command to "
    "the next; programs in the background do not. Nobody answers questions, and commands have no "
    "terminal: give programs what they need as arguments or files."
)
_WITH_TOOLS: Final = (
    f"Use the tool `{RUN}` for every command. When the task is finished and you have checked "
    f"it, call `{DONE}`."
)
_WITH_FENCES: Final = (
    "To run commands, end your message with one block fenced by ```bash and ```. You are then "
    "shown what it printed. When the task is finished and you have checked it, write "
    "<done>answer</done> instead, with the answer where the task asks for one."
)
_NOTHING_ASKED: Final = "You asked for nothing. Run a command, or say that you are done."
_FENCE: Final = re.compile(r"```(?:bash|sh|shell|console)?[ \t]*\n(.*?)(?:\n)?```", re.DOTALL)
_DONE_TAG: Final = re.compile(r"<done>(.*?)(?:</done>|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the model wants run, with the call that asked for it."""

    text: str
    call_id: str | None = None
    problem: str | None = None
    """What is wrong with how it was asked for: told to the model, nothing is run."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the model asks for with one answer."""

    commands: tuple[Command, ...] = ()
    answer: str | None = None
    """Not None: it is done."""


class Dialogue(Protocol):
    """A way in which model and shell talk."""

    tools: Sequence[Tool]
    about: str
    """What the model is told of it."""

    def wish(self, response: ModelResponse) -> Wish:
        """Read an answer."""
        ...

    def turns(self, response: ModelResponse, came: Mapping[str | None, str]) -> tuple[Turn, ...]:
        """Give what was said and what came of it, by call, as the next request holds it."""
        ...


class ToolDialogue:
    """By tool calls. A `Dialogue`."""

    tools: Sequence[Tool] = TOOLS
    about = _WITH_TOOLS

    def wish(self, response: ModelResponse) -> Wish:
        """Read the calls; `done` counts only after every command of the same answer."""
        commands = []
        answer = None
        for call in response.tool_calls:
            if call.name == DONE:
                text, _ = _argument(call, "answer")
                answer = text if text is not None else response.text
            elif call.name == RUN:
                text, problem = _argument(call, "command")
                commands.append(Command(text or "", call.id, problem))
            else:
                problem = f"there is no tool {call.name!r}; there are {RUN} and {DONE}"
                commands.append(Command("", call.id, problem))
        return Wish(tuple(commands), answer)

    def turns(self, response: ModelResponse, came: Mapping[str | None, str]) -> tuple[Turn, ...]:
        """Every call has a result, as the protocols demand."""
        said = AssistantTurn(response.text, response.tool_calls, response.echo)
        if not response.tool_calls:
            return said, Message("user", came.get(None, _NOTHING_ASKED))
        results = [(call.id, came.get(call.id, "")) for call in response.tool_calls]
        return said, ToolTurn(tuple(results))


class FencedDialogue:
    """By fenced blocks of the text. A `Dialogue`."""

    tools: Sequence[Tool] = ()
    about = _WITH_FENCES

    def wish(self, response: ModelResponse) -> Wish:
        """Read the last block; without one, whether it says that it is done."""
        blocks = _FENCE.findall(response.text)
        if blocks:
            return Wish((Command(blocks[-1]),))
        found = _DONE_TAG.search(response.text)
        return Wish(answer=None if found is None else found[1].strip())

    def turns(self, response: ModelResponse, came: Mapping[str | None, str]) -> tuple[Turn, ...]:
        """What came of it is the user's turn."""
        return (
            Message("assistant", response.text or "(nothing)"),
            Message("user", came.get(None, _NOTHING_ASKED)),
        )


def opening(messages: Sequence[Message], dialogue: Dialogue, system: str | None) -> list[Turn]:
    """Give the conversation's beginning: our words, the task's own system message, the task."""
    own = system if system is not None else f"{_ABOUT_SHELL}\n\n{dialogue.about}"
    theirs = [message.content for message in messages if message.role == "system"]
    rest: list[Turn] = [message for message in messages if message.role != "system"]
    return [Message("system", "\n\n".join([own, *theirs])), *rest]


def _argument(call: ToolCall, name: str) -> tuple[str | None, str | None]:
    """Give the argument's text, or what is wrong with the arguments."""
    try:
        data = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        return None, f"the arguments are not JSON: {error}"
    value = data.get(name) if isinstance(data, dict) else None
    if not isinstance(value, str):
        return None, f"the tool {call.name} takes {{{name!r}: text}}"
    return value, None
