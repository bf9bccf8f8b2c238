"""Where the mock's answers come from: a text, the prompt itself, a file, a Python function."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.config.errors import BadInput, Problem, Where
from steelyard.models.mock.wire import Answer, Call, ToolUse

Source = Callable[[Call], Answer | None]
"""Gives the answer to a call, None where it has none; asked in order."""

ANSWER_FIELDS: Final = frozenset(
    {"answer", "tool_calls", "reasoning", "stop_reason", "usage", "turns"}
)
ENTRY_FIELDS: Final = ANSWER_FIELDS | {"prompt", "match", "model"}


def fixed(text: str) -> Source:
    """Answer every call with the same text."""
    answer = Answer(text)
    return lambda _call: answer


def echo(call: Call) -> Answer:
    """Answer with the last user text."""
    return Answer(call.prompt)


def answer_of(data: Any, call: Call) -> Answer:
    """Read an answer as files and functions give it: a text, or a mapping.

    `answer` may be a list: the n-th call with the same messages gets the n-th, round and round.
    `turns` is a list of answers: the one for a conversation that holds i answers already.

    Raises:
        ValueError: it is neither, or a field is wrong.
    """
    if isinstance(data, Answer):
        return data
    if isinstance(data, str):
        return Answer(data)
    if not isinstance(data, Mapping):
        raise ValueError(f"an answer is a text or a mapping, not {type(data).__name__}")
    unknown = set(data) - ENTRY_FIELDS
    if unknown:
        raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
    if "turns" in data:
        turns = data["turns"]
        if not isinstance(turns, list) or not turns:
            raise ValueError("turns is a list of answers")
        done = sum(turn.role == "assistant" for turn in call.turns)
        return answer_of(turns[min(done, len(turns) - 1)], call)
    text = data.get("answer", "")
    if isinstance(text, list) and text:
        text = text[call.nth % len(text)]
    if not isinstance(text, str):
        raise ValueError("answer is a text or a list of texts")
    return Answer(
        text,
        tuple(_tool_use(use) for use in data.get("tool_calls") or ()),
        str(data.get("reasoning") or ""),
        data.get("stop_reason"),
        data.get("usage"),
    )


def _tool_use(data: Any) -> ToolUse:
    if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
        raise ValueError("a tool call needs a name")
    arguments = data.get("arguments", {})
    if not isinstance(arguments, str | Mapping):
        raise ValueError("a tool call's arguments are a mapping or a text")
    return ToolUse(data["name"], arguments)


@dataclass(frozen=True, slots=True)
class FileAnswers:
    """Answers of a file: by whole prompt first, then the first whose text occurs in it."""

    by_prompt: Mapping[str, Sequence[Mapping[str, Any]]]
    by_match: Sequence[Mapping[str, Any]]

    def __call__(self, call: Call) -> Answer | None:
        """Give the answer of the first entry that fits the call."""
        prompt = call.prompt
        entries = [*self.by_prompt.get(prompt, ()), *self.by_match]
        for entry in entries:
            if entry.get("model", call.model) != call.model:
                continue
            if "prompt" in entry or entry.get("match", "") in prompt:
                return answer_of(entry, call)
        return None


def read_file(path: Path) -> FileAnswers:
    """Read a file of JSON lines, each `{prompt | match, answer | tool_calls | turns, …}`.

    Raises:
        BadInput: all that is wrong with it, with lines.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    by_prompt: dict[str, list[Mapping[str, Any]]] = {}
    by_match: list[Mapping[str, Any]] = []
    problems: list[Problem] = []
    probe = Call("openai-chat", "", (), False, True, {})
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = orjson.loads(line)
            if not isinstance(entry, dict):
                raise ValueError("a line is a JSON object")
            answer_of(entry, probe)
            if not set(entry) & ANSWER_FIELDS:
                raise ValueError("no answer, tool_calls or turns")
            if not isinstance(entry.get("prompt", entry.get("match", "")), str):
                raise ValueError("prompt and match are texts")
        except ValueError as error:
            problems.append(Problem(str(error), Where(str(path), number)))
            continue
        if "prompt" in entry:
            by_prompt.setdefault(entry["prompt"], []).append(entry)
        else:
            by_match.append(entry)
    if problems:
        raise BadInput.of(problems)
    return FileAnswers(by_prompt, by_match)


def from_function(name: str) -> Source:
    """Answer with what `module:function` or `./file.py:function` returns for a call.

    It is given a mapping (protocol, model, messages, prompt, nth, body) and returns a text, a
    mapping as in a file, or None to pass the call on.

    Raises:
        BadInput: there is no such function, or it cannot be imported.
    """
    function = _load(name)

    def source(call: Call) -> Answer | None:
        found = function(
            {
                "protocol": call.protocol,
                "model": call.model,
                "messages": [{"role": turn.role, "content": turn.text} for turn in call.turns],
                "prompt": call.prompt,
                "nth": call.nth,
                "body": call.body,
            }
        )
        return None if found is None else answer_of(found, call)

    return source


def _load(name: str) -> Callable[[Mapping[str, Any]], Any]:
    where, _, attribute = name.rpartition(":")
    if not where or not attribute:
        raise BadInput(
            f"{name!r} names no function", remedy="write module:function or ./file.py:function"
        )
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location("steelyard_mock_function", where)
            if spec is None or spec.loader is None:
                raise BadInput(f"{where} is not a Python file")
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(where)
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"cannot import {where}: {type(error).__name__}: {error}") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise BadInput(f"{where} has no function {attribute!r}")
    return function  # type: ignore[no-any-return] # what it returns is checked at each call
