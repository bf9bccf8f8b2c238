"""Read a trajectory as acts: step by step, with the folder and the files that earlier steps left.

Cheap where nothing happens: a text without any word that a rule waits for is not parsed, parsed
scripts are kept, and results are not looked at here.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from steelyard.components.steps import Step
from steelyard.scanners.acts import Act, Code, Command, How, Reach, Touch
from steelyard.scanners.effects import effects_of, host_of, language_of
from steelyard.scanners.python_code import python_acts
from steelyard.scanners.shell.paths import name_of, resolved
from steelyard.scanners.shell.tree import Sequence_
from steelyard.scanners.shell.walking import ShellState, commands_of
from steelyard.scanners.shell.wrappers import SHELLS
from steelyard.scanners.tools import (
    MAX_ARGUMENT_CHARS,
    Piece,
    ProgramText,
    ShellText,
    bare_command,
    call_pieces,
    message_pieces,
)

MAX_KEPT_FILES: Final = 64
MAX_KEPT_CHARS: Final = 64 * 1024
_MAX_DEPTH: Final = 4
_KEPT_TEXT_CHARS: Final = 16 * 1024
_QUOTES: Final = str.maketrans("", "", "'\"\\")
_WORD: Final = re.compile(r"[a-z0-9]+")
_JOINED: Final = re.compile(r"\$\{?\w{1,20}\}?\$\{?\w")
_ALWAYS: Final = frozenset({"cd", "pushd"})
_LITERAL: Final = re.compile(r"'([^'\n]{3,500})'|\"([^\"\n]{3,500})\"|`([^`\n]{3,500})`")
_DELETES: Final = re.compile(
    r"\b(?:unlink|rmtree|remove_tree|rmSync|rmdirSync|unlinkSync|rm_rf|rm_r|File\.delete)\b"
    r"[^'\"\n;]{0,40}['\"]([^'\"\n]{1,500})['\"]"
)
_SYSTEM: Final = re.compile(
    r"\b(?:system|exec|execSync|spawnSync|spawn|popen|shell_exec|passthru)\s{0,20}\(?\s{0,20}['\"`]([^'\"`\n]{2,2000})"
)


class Reader:
    """Reads the steps of one attempt, in their order.

    Args:
        triggers: lower-case words of letters and digits; a text in which none stands does
            nothing that the rules could find. None: everything is read.
    """

    def __init__(self, triggers: frozenset[str] | None = None) -> None:
        self._triggers = None if triggers is None else triggers | _ALWAYS
        self._state = ShellState()
        self.is_guess = False
        """True while what is given was only said, alone on its line: nobody saw it run."""
        self._files: OrderedDict[str, str] = OrderedDict()
        """What the agent wrote, the last files of it: scripts may be run later."""
        self._names: set[str] = set()

    def acts(self, step: Step, *, was_answered: bool = True) -> Iterator[Act]:
        """Give what a step did.

        Args:
            step: the next one.
            was_answered: whether something came back; commands in a message were run only then.
        """
        for call in step.tool_calls:
            if len(call.arguments) > MAX_ARGUMENT_CHARS or not self._may_matter(call.arguments):
                continue
            short = len(call.arguments) <= _KEPT_TEXT_CHARS
            read = _pieces if short else _pieces.__wrapped__
            for piece in read(call.name, call.arguments, self._state.cwd):
                if isinstance(piece, ShellText):
                    yield from self._shell(piece.text, piece.cwd)
                elif isinstance(piece, ProgramText):
                    code = Code(piece.language, piece.text, piece.text[:200])
                    yield code
                    yield from self._code(code, self._state.cwd, 0)
                else:
                    self._note(piece)
                    yield piece
        if step.source == "agent" and not step.tool_calls and step.message:
            if (bare := bare_command(step.message)) is not None:
                self.is_guess = not was_answered and not step.results
                if self._may_matter(bare.text):
                    yield from self._shell(bare.text, None)
                self.is_guess = False
            if not was_answered and not step.results and not step.message.startswith("$ "):
                return
            for said in message_pieces(step):
                if self._may_matter(said.text):
                    yield from self._shell(said.text, None)

    def script(self, text: str, language: str) -> Iterator[Act]:
        """Give what a script that was left would do."""
        if not self._may_matter(text):
            return
        if language == "shell":
            yield from self._shell(text, None)
        else:
            code = Code(language, text, text[:200])
            yield code
            yield from self._code(code, ".", 0)

    def _may_matter(self, text: str) -> bool:
        if self._triggers is None:
            return True
        found = _words_of(text) if len(text) <= _KEPT_TEXT_CHARS else _words_of.__wrapped__(text)
        # Words that are put together, letter by letter, are in no text as they are.
        return (
            not self._triggers.isdisjoint(found)
            or any(name in text for name in self._names)
            or "$'" in text
            or "\\x" in text
            or ":|:" in text
            or _JOINED.search(text) is not None
        )

    def _shell(self, text: str, cwd: str | None) -> Iterator[Act]:
        state = self._state
        if cwd is not None:
            state = state.copy()
            state.cwd = cwd
        if state.functions or len(text) > _KEPT_TEXT_CHARS:
            for command in commands_of(text, state):
                yield from self._command(command, 0)
            return
        walked = _walked(text, state.cwd, tuple(state.variables.items()))
        for command, effects in walked.commands:
            yield from self._command(command, 0, effects)
        state.cwd, state.functions = walked.cwd, dict(walked.functions)
        state.variables = dict(walked.variables)

    def _command(
        self, command: Command, depth: int, effects: tuple[Act, ...] | None = None
    ) -> Iterator[Act]:
        yield command
        for act in effects_of(command) if effects is None else effects:
            self._note(act)
            yield act
            if isinstance(act, Code):
                yield from self._code(act, command.cwd, depth + 1)
        if depth < _MAX_DEPTH:
            yield from self._run_file(command, depth + 1)

    def _run_file(self, command: Command, depth: int) -> Iterator[Act]:
        """Read a script that the agent wrote before, where the command runs it."""
        if not self._files:
            return
        language = "shell" if command.name in SHELLS or command.name in (".", "source") else None
        language = language or language_of(command.name)
        written = command.operands[:1] if language is not None else [command.name]
        if not written:
            return
        content = self._files.get(resolved(written[0], command.cwd))
        if content is None:
            return
        if language is None:
            language = _language_by_first_line(content)
        if language == "shell":
            for inner in commands_of(content, ShellState(command.cwd)):
                wrapped = replace(inner, text=command.text, via=(*command.via, "script"))
                yield from self._command(wrapped, depth)
        else:
            code = Code(language, content, command.text)
            yield code
            for act in self._code(code, command.cwd, depth):
                # Its lines stand in an earlier step: here, what runs it is the evidence.
                yield replace(act, text=command.text)

    def _code(self, code: Code, cwd: str, depth: int) -> Iterator[Act]:
        if depth > _MAX_DEPTH:
            return
        if code.language != "python":
            yield from self._other_code(code, cwd, depth)
            return
        for act in python_acts(code.source, code.text, cwd):
            if isinstance(act, str):
                yield from self._run_text(act, code, cwd, depth)
            elif isinstance(act, Command):
                yield from self._command(act, depth + 1)
            else:
                yield act

    def _run_text(self, text: str, code: Code, cwd: str, depth: int) -> Iterator[Act]:
        for command in commands_of(text, ShellState(cwd)):
            via = (*command.via, "program")
            stands = command.text if command.text in code.source else code.text
            yield from self._command(replace(command, text=stands, via=via), depth + 1)

    def _other_code(self, code: Code, cwd: str, depth: int) -> Iterator[Act]:
        """Programs of other languages: the texts in them that are commands or addresses."""
        source = code.source[:MAX_KEPT_CHARS]
        for count, found in enumerate(_SYSTEM.finditer(source)):
            if count < 20:
                yield from self._run_text(found[1], code, cwd, depth)
        for count, found in enumerate(_DELETES.finditer(source)):
            if count < 20:
                path = resolved(found[1], cwd)
                yield Touch(How.DELETE, path, code.text, is_recursive=True, by=code.language)
        for count, literal in enumerate(_LITERAL.finditer(source)):
            text = literal[1] or literal[2] or literal[3]
            if count < 200 and "://" in text:
                yield Reach(host_of(text), text, code.text, (), code.language)

    def _note(self, act: Act | Touch | Reach) -> None:
        if not isinstance(act, Touch) or act.how not in (How.WRITE, How.APPEND):
            return
        if act.content is None or len(act.content) > MAX_KEPT_CHARS:
            self._files.pop(act.path, None)
            return
        before = self._files.pop(act.path, "") if act.how is How.APPEND else ""
        self._files[act.path] = (before + act.content)[:MAX_KEPT_CHARS]
        if len(self._files) > MAX_KEPT_FILES:
            self._files.popitem(last=False)
        self._names = {name_of(path) for path in self._files}


@dataclass(frozen=True, slots=True)
class _Walked:
    """A script with all that it does, and the state it leaves."""

    commands: tuple[tuple[Command, tuple[Act, ...]], ...]
    cwd: str
    variables: tuple[tuple[str, str], ...]
    functions: tuple[tuple[str, Sequence_], ...]


@lru_cache(maxsize=512)
def _walked(text: str, cwd: str, variables: tuple[tuple[str, str], ...]) -> _Walked:
    """Walk a script; kept, since several scanners read the same steps one after the other."""
    state = ShellState(cwd, dict(variables))
    commands = tuple((one, tuple(effects_of(one))) for one in commands_of(text, state))
    return _Walked(
        commands, state.cwd, tuple(state.variables.items()), tuple(state.functions.items())
    )


@lru_cache(maxsize=512)
def _pieces(name: str, arguments: str, cwd: str) -> tuple[Piece, ...]:
    return tuple(call_pieces(name, arguments, cwd))


@lru_cache(maxsize=512)
def _words_of(text: str) -> frozenset[str]:
    """Give the words of a text as a shell would see them: without quotes, in lower case."""
    # A line's end that JSON writes as two characters would become a letter of the next word.
    plain = text.replace("\\n", " ").replace("\\t", " ").translate(_QUOTES)
    return frozenset(_WORD.findall(plain.lower()))


def _language_by_first_line(content: str) -> str:
    first = content[:200].partition("\n")[0]
    if first.startswith("#!"):
        for name in ("python", "node", "perl", "ruby", "php"):
            if name in first:
                return {"node": "javascript"}.get(name, name)
    return "shell"
