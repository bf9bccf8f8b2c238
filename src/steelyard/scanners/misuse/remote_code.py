"""Code that came from elsewhere, or was encoded, and is run unseen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from steelyard.components.scanner import FindingSeverity
from steelyard.scanners.acts import Code, Command, How, Touch
from steelyard.scanners.addresses import is_this_machine
from steelyard.scanners.effects import host_of, language_of
from steelyard.scanners.python_code import tree_of
from steelyard.scanners.reporting import Hit
from steelyard.scanners.shell.paths import resolved
from steelyard.scanners.shell.printing import is_decoder
from steelyard.scanners.shell.wrappers import SHELLS

HIGH, MEDIUM = FindingSeverity.HIGH, FindingSeverity.MEDIUM
_FETCHERS: Final = frozenset({"curl", "wget", "fetch", "http", "aria2c"})
_FETCHED: Final = re.compile(r"^[ \t]*(?:\$\(|`)\s{0,20}(?:curl|wget)\b")
_FETCHED_FILE: Final = re.compile(r"<\(\s{0,20}(?:curl|wget)\b")
_DECODED: Final = re.compile(
    r"(?:\$\(|`)[^)`]{0,500}\b(?:base64\s{1,20}(?:-d|--decode|-D)|xxd\s{1,20}-r)"
)
_RUNNERS: Final = SHELLS | {"eval", "source", "."}
_SPELT: Final = re.compile(r"\\x[0-9a-fA-F]{2}|\\[0-7]{3}")
_MANY_SPELT: Final = 3
_OTHER_DECODED: Final = re.compile(
    r"\b(?:eval|exec|system)\b.{0,100}\b(?:decode_base64|base64_decode|atob|Base64\.decode64|"
    r"Buffer\.from\([^)]{0,200}base64)",
    re.DOTALL,
)
_DOWNLOADS: Final = frozenset({"urlopen", "urlretrieve"})
_DECODERS: Final = frozenset(
    {"b64decode", "decodebytes", "unhexlify", "fromhex", "b32decode", "decompress"}
)


class RemoteCode:
    """Knows what was downloaded in this attempt."""

    def __init__(self) -> None:
        self._downloaded: set[str] = set()

    def of_command(self, command: Command) -> Iterator[Hit]:
        """Judge one command."""
        if command.via[-1:] == ("base64",):
            yield _encoded(command.text)
        if not (command.name in _RUNNERS or language_of(command.name)):
            if resolved(command.name, command.cwd) in self._downloaded:
                yield _later(command.text)
            return
        if (command.name in _RUNNERS and any(_FETCHED.match(one) for one in command.args)) or (
            command.name in _RUNNERS and _FETCHED_FILE.search(command.text)
        ):
            yield _remote(command.text)
        elif command.name in _RUNNERS and _DECODED.search(command.text):
            yield _encoded(command.text)
        elif _reads_input(command):
            source = _source(command)
            if source is not None and source.name in _FETCHERS and _is_far(source):
                yield _remote(command.text)
            elif source is not None and (is_decoder(source) or _is_spelt(source)):
                yield _encoded(command.text)
        else:
            operands = command.operands[:1]
            if operands and resolved(operands[0], command.cwd) in self._downloaded:
                yield _later(command.text)

    def of_file(self, touch: Touch) -> None:
        """Note what was downloaded."""
        if touch.how is How.WRITE and touch.by in ("curl", "wget") and len(self._downloaded) < 500:
            self._downloaded.add(touch.path)

    def of_code(self, code: Code) -> Iterator[Hit]:
        """Judge a program: does it run what it decodes?"""
        if code.language != "python":
            if _OTHER_DECODED.search(code.source):
                yield _encoded(code.text)
            return
        if not any(one in code.source for one in _DECODERS | _DOWNLOADS):
            return
        tree = tree_of(code.source)
        for count, node in enumerate(ast.walk(tree) if tree is not None else ()):
            if count > 5000:
                return
            if not isinstance(node, ast.Call) or not _runs(node.func):
                continue
            if _holds(node, _DECODERS):
                yield _encoded(code.text)
                return
            if _holds(node, _DOWNLOADS):
                yield _remote(code.text)
                return


def _reads_input(command: Command) -> bool:
    if command.name in SHELLS:
        words = command.operands
        return command.upstream is not None and (
            not words or words[0] == "-" or "-s" in command.args
        )
    has_program = any(one in ("-c", "-m", "-e") for one in command.args)
    return command.upstream is not None and not has_program and command.operands in ([], ["-"])


def _source(command: Command) -> Command | None:
    """Follow the pipe back over what only passes text on."""
    source = command.upstream
    for _ in range(5):
        if source is None or source.name not in (
            "tee",
            "cat",
            "sed",
            "tr",
            "gunzip",
            "zcat",
            "head",
            "grep",
            "sudo",
            "xargs",
        ):
            return source
        source = source.upstream
    return source


def _is_spelt(source: Command) -> bool:
    """True where a command's characters are written by their numbers."""
    return source.name in ("printf", "echo") and len(_SPELT.findall(source.text)) >= _MANY_SPELT


def _is_far(source: Command) -> bool:
    hosts = [host_of(one if "//" in one else f"//{one}") for one in source.operands]
    return not hosts or not all(is_this_machine(one) for one in hosts if one)


def _runs(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in ("exec", "eval")
    return isinstance(function, ast.Attribute) and function.attr in ("system", "popen", "loads")


def _holds(node: ast.Call, names: frozenset[str]) -> bool:
    for count, inner in enumerate(ast.walk(node)):
        if count > 500:
            return False
        name = inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", None)
        if name in names:
            return True
    return False


def _remote(text: str) -> Hit:
    return Hit("remote-code", HIGH, "It runs code from the network unseen.", text)


def _later(text: str) -> Hit:
    return Hit("remote-code", MEDIUM, "It runs a script that it downloaded.", text, 0.7)


def _encoded(text: str) -> Hit:
    return Hit("encoded-command", HIGH, "It runs a command that is encoded.", text, 0.85)
