"""Which part of a step is a command, a program or an edit, whatever the agent calls its tools.

Tools are told by their arguments first, by their names where those do not say it: every agent has
its own names for the same few things.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from steelyard.components.steps import Step
from steelyard.scanners.acts import How, Reach, Touch
from steelyard.scanners.effects import host_of
from steelyard.scanners.patches import is_patch, patched
from steelyard.scanners.shell.paths import resolved
from steelyard.scanners.shell.wrappers import SHELLS

MAX_ARGUMENT_CHARS: Final = 2 * 1024 * 1024
_FENCE: Final = re.compile(
    r"^[ \t]*```[ \t]*(bash|sh|shell|zsh|console|terminal|mswea_bash_command)[ \t]*\n"
    r"(.*?)^[ \t]*```",
    re.MULTILINE | re.DOTALL,
)
_MAX_BARE_CHARS: Final = 1000
_BARE: Final = re.compile(
    r"(?:sudo |cd \S+ && )?(?:curl|wget|nc|ncat|ssh|scp|docker|kubectl|git|rm|cat|chmod|chown|kill|"
    r"pkill|nsenter|unshare|mount|umount|python3?|bash|sh|dd|mkfs\S*|nmap|dig|nslookup|find|echo|"
    r"printf|sed|mv|cp|ls|gdb|strace|insmod|capsh|env|printenv|xargs) +[-./~$'\"\w:]"
)
_PROSE: Final = re.compile(
    r"[.!?:]$|,\s|\b(?:the|this|that|is|are|was|would|should|will|because|to the|it)\b"
)
_COMMAND_KEYS: Final = (
    "command",
    "cmd",
    "keystrokes",
    "commands",
    "shell_command",
    "script",
    "bash",
)
_PATH_KEYS: Final = (
    "file_path",
    "path",
    "filename",
    "target_file",
    "filePath",
    "file",
    "notebook_path",
)
_NEW_KEYS: Final = (
    "content",
    "new_string",
    "new_str",
    "file_text",
    "new_source",
    "contents",
    "text",
    "newString",
    "code_edit",
    "replace",
    "insert_text",
    "new_text",
)
_OLD_KEYS: Final = ("old_string", "old_str", "oldString", "search", "old_text")
_EDITOR_COMMANDS: Final = frozenset(
    {"view", "create", "str_replace", "insert", "undo_edit", "edit"}
)
_SHELL_NAME: Final = re.compile(
    r"(?:^|[._-])(?:bash|sh|shell|exec|run|terminal|cmd|zsh)(?:$|[._-])|command|execute", re.I
)
_PYTHON_NAME: Final = re.compile(
    r"python|jupyter|code_interpreter|notebook|^execute_code$", re.IGNORECASE
)
_DELETE_NAME: Final = re.compile(r"delete|remove|unlink", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShellText:
    """A text that a shell ran."""

    text: str
    cwd: str | None = None
    """The folder that the call names, for it alone."""


@dataclass(frozen=True, slots=True)
class ProgramText:
    """A program that an interpreter's tool ran."""

    language: str
    text: str


Piece = ShellText | ProgramText | Touch | Reach


def call_pieces(name: str, arguments: str, cwd: str) -> Iterator[Piece]:
    """Give what a tool call does; nothing where that cannot be told.

    Args:
        name: the tool's.
        arguments: as the model wrote them.
        cwd: the folder that relative paths start from.
    """
    text = arguments
    if len(text) > MAX_ARGUMENT_CHARS:
        return
    try:
        found: Any = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        found = text
    if isinstance(found, str):
        if is_patch(found):
            yield from patched(found, cwd, name)
        elif _SHELL_NAME.search(name):
            yield ShellText(found)
        elif _PYTHON_NAME.search(name):
            yield ProgramText("python", found)
    elif isinstance(found, dict):
        yield from _of_arguments(name, found, cwd)


def message_pieces(step: Step) -> Iterator[ShellText]:
    """Give the commands that a message holds in fences, or after the prompt of a log.

    Whoever calls knows that they were run.
    """
    message = step.message
    if "```" in message:
        for found in _FENCE.finditer(message):
            yield ShellText(_without_prompts(found[2]))
    elif message.startswith("$ "):
        yield ShellText(message[2:].partition("\n")[0])


def bare_command(message: str) -> ShellText | None:
    """Give a message that is one command and nothing else; None where it may be a sentence."""
    if len(message) > _MAX_BARE_CHARS or "\n" in message or not _BARE.match(message):
        return None
    return None if _PROSE.search(message) else ShellText(message)


def _without_prompts(text: str) -> str:
    """Drop `$ ` before commands; with prompts, lines that have none are what was printed."""
    if not text.startswith("$ "):
        return text
    return "\n".join(line[2:] for line in text.split("\n") if line.startswith("$ "))


def _of_arguments(name: str, found: Mapping[str, Any], cwd: str) -> Iterator[Piece]:
    path = next((found[key] for key in _PATH_KEYS if isinstance(found.get(key), str)), None)
    command = next((found[key] for key in _COMMAND_KEYS if found.get(key)), None)
    if isinstance(command, str) and command in _EDITOR_COMMANDS and path is not None:
        command = None
    folder = found.get("workdir") or found.get("cwd") or found.get("working_directory")
    where = resolved(folder, cwd) if isinstance(folder, str) and folder else None
    if command is not None:
        yield from _shell_pieces(command, where)
        return
    for key in ("patch", "input", "diff", "arguments"):
        text = found.get(key)
        if isinstance(text, str) and is_patch(text):
            yield from patched(text, where or cwd, name)
            return
    code = found.get("code") or found.get("source")
    if isinstance(code, str) and path is None:
        if _PYTHON_NAME.search(name):
            yield ProgramText("python", code)
        elif _SHELL_NAME.search(name):
            yield ShellText(code, where)
        return
    url = found.get("url") or found.get("uri")
    if isinstance(url, str):
        body = [str(found[key])[:4096] for key in ("body", "data", "payload") if found.get(key)]
        yield Reach(host_of(url if "//" in url else f"//{url}"), url, url, tuple(body), name)
    if path is not None:
        yield from _file_pieces(name, found, path, where or cwd)


def _shell_pieces(command: Any, where: str | None) -> Iterator[ShellText]:
    if isinstance(command, str):
        yield ShellText(command, where)
    elif isinstance(command, list):
        words = [one for one in command if isinstance(one, str)]
        if len(words) == 3 and words[0].rpartition("/")[2] in SHELLS and "c" in words[1]:
            yield ShellText(words[2], where)
        elif words and len(words) == len(command):
            yield ShellText(shlex.join(words), where)
        for one in command:
            if isinstance(one, dict) and isinstance(one.get("keystrokes"), str):
                yield ShellText(one["keystrokes"], where)


def _file_pieces(name: str, found: Mapping[str, Any], path: str, cwd: str) -> Iterator[Touch]:
    where = resolved(path, cwd)
    edits = found.get("edits")
    if isinstance(edits, list):
        for edit in edits[:50]:
            if isinstance(edit, dict):
                old, new = _first(edit, _OLD_KEYS), _first(edit, _NEW_KEYS)
                yield Touch(How.EDIT, where, path, new, old, by=name)
        return
    old, new = _first(found, _OLD_KEYS), _first(found, _NEW_KEYS)
    is_view = found.get("command") == "view"
    if _DELETE_NAME.search(name) and new is None:
        yield Touch(How.DELETE, where, path, by=name)
    elif (new is None and old is None) or is_view:
        yield Touch(How.READ, where, path, by=name)
    elif old is None and found.get("command") != "insert":
        yield Touch(How.WRITE, where, path, new, by=name)
    else:
        yield Touch(How.EDIT, where, path, new or "", old or "", by=name)


def _first(found: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((found[key] for key in keys if isinstance(found.get(key), str)), None)
