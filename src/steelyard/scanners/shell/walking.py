"""Walk a script: each command as it would run, with its folder, variables and wrappers resolved.

Nothing is run. What cannot be known (a file's content, a program's output) stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from steelyard.scanners.acts import Command, Redirection
from steelyard.scanners.shell.paths import name_of, resolved
from steelyard.scanners.shell.printing import printed
from steelyard.scanners.shell.syntax import parsed
from steelyard.scanners.shell.tree import (
    Loop,
    Node,
    Pipeline,
    Redirect,
    Sequence_,
    Simple,
    Substitution,
    Variable,
    Word,
)
from steelyard.scanners.shell.wrappers import unwrapped

MAX_COMMANDS: Final = 600
"""Of one script, all that it wraps included."""
MAX_NESTING: Final = 8
_MAX_LOOP: Final = 12
_MAX_WORDS: Final = 400
_MAX_TEXT: Final = 32_768
_RANGE: Final = re.compile(r"(\d{1,6})\.\.(\d{1,6})")
_WHERE: Final = frozenset({"which", "command", "type"})


@dataclass(slots=True)
class ShellState:
    """What lasts from one command to the next."""

    cwd: str = "."
    variables: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Sequence_] = field(default_factory=dict)

    def copy(self) -> ShellState:
        """Give a state of its own, for a subshell."""
        return ShellState(self.cwd, dict(self.variables), dict(self.functions))


def commands_of(text: str, state: ShellState) -> Iterator[Command]:
    """Give the commands of a script, wrappers before what they wrap; `state` goes along."""
    return _Walk().sequence(parsed(text), state, ())


class _Walk:
    def __init__(self) -> None:
        self._left = MAX_COMMANDS

    def sequence(
        self, script: Sequence_, state: ShellState, via: tuple[str, ...]
    ) -> Iterator[Command]:
        inner = state.copy() if script.is_subshell else state
        for node in script.nodes:
            yield from self._node(node, inner, via, None)
        if script.redirects and script.text:
            redirections = self._redirections(script.redirects, inner, [])
            yield Command("", (), script.text, inner.cwd, redirections, via=via)

    def _node(
        self, node: Node, state: ShellState, via: tuple[str, ...], upstream: Command | None
    ) -> Iterator[Command]:
        if self._left <= 0 or len(via) > MAX_NESTING:
            return
        if isinstance(node, Simple):
            yield from self._simple(node, state, via, upstream)
        elif isinstance(node, Pipeline):
            before = upstream
            for stage in node.stages:
                last: Command | None = None
                for command in self._node(stage, state, via, before):
                    last = command
                    yield command
                before = last
        elif isinstance(node, Sequence_):
            yield from self.sequence(node, state, via)
        elif isinstance(node, Loop):
            yield from self._loop(node, state, via)
        else:
            state.functions[node.name] = node.body
            yield Command("function", (node.name,), node.text, state.cwd, via=via)

    def _loop(self, node: Loop, state: ShellState, via: tuple[str, ...]) -> Iterator[Command]:
        inside: list[Sequence_] = []
        values = [value for word in node.words for value in self._values(word, state, inside)]
        for script in inside:
            yield from self.sequence(script, state.copy(), via)
        for value in values[:_MAX_LOOP] or [""]:
            state.variables[node.variable] = value
            yield from self.sequence(node.body, state, via)

    def _simple(
        self, node: Simple, state: ShellState, via: tuple[str, ...], upstream: Command | None
    ) -> Iterator[Command]:
        self._left -= 1
        inside: list[Sequence_] = []
        env = tuple(
            (name, " ".join(self._values(word, state, inside, splits=False)))
            for name, word in node.assignments
        )
        words = [value for word in node.words for value in self._values(word, state, inside)]
        redirections = self._redirections(node.redirects, state, inside)
        stdin = self._stdin(node.redirects, state)
        for script in inside:
            yield from self.sequence(script, state.copy(), via)
        sets = not words or words[0] == "export"
        if sets:
            state.variables.update(env)
        if stdin is None and upstream is not None:
            stdin = printed(upstream)
        name, *args = words[:_MAX_WORDS] or [""]
        command = Command(
            name_of(name), tuple(args), node.text, state.cwd, redirections, stdin, upstream, via,
            () if sets else env, env if sets else (),
        )  # fmt: skip
        yield command
        if command.name in state.functions and len(via) < MAX_NESTING:
            body = state.functions[command.name]
            inner = state.copy()
            inner.variables.update({str(n): value for n, value in enumerate(args[:9], 1)})
            inner.variables["@"] = " ".join(args)
            inner.functions.pop(command.name)  # a function that calls itself is walked once
            yield from self.sequence(body, inner, (*via, command.name))
            return
        self._move(command, state)
        yield from self._wrapped(command, state)

    def _wrapped(self, command: Command, state: ShellState) -> Iterator[Command]:
        found = unwrapped(command)
        if found is None or self._left <= 0 or len(command.via) >= MAX_NESTING:
            return
        via = (*command.via, *found.via)
        if found.script is not None:
            inner_state = state if found.shares_state else state.copy()
            inner_state.variables.update(found.env)
            for one in self.sequence(parsed(found.script[:_MAX_TEXT]), inner_state, via):
                yield replace(one, text=_evidence(one, command), env=found.env or one.env)
            return
        for argv in found.argvs[:_MAX_LOOP]:
            self._left -= 1
            inner = replace(
                command,
                name=name_of(argv[0]),
                args=tuple(argv[1:]),
                via=via,
                env=command.env + found.env,
                stdin=None if found.takes_stdin else command.stdin,
                cwd=found.cwd or command.cwd,
            )
            yield inner
            self._move(inner, state)
            yield from self._wrapped(inner, state)

    def _move(self, command: Command, state: ShellState) -> None:
        if command.name in ("cd", "pushd") and command.upstream is None:
            operands = command.operands
            if not operands:
                state.cwd = "~" if command.name == "cd" else state.cwd
            elif operands[0] != "-":
                state.cwd = resolved(operands[0], state.cwd)

    def _stdin(self, redirects: tuple[Redirect, ...], state: ShellState) -> str | None:
        for one in redirects:
            if one.op == "<<":
                return one.body
            if one.op == "<<<":
                return " ".join(self._values(one.target, state, [], splits=False))
        return None

    def _redirections(
        self, redirects: tuple[Redirect, ...], state: ShellState, inside: list[Sequence_]
    ) -> tuple[Redirection, ...]:
        found = []
        for one in redirects:
            if one.op in ("<<", "<<<"):
                continue
            path = " ".join(self._values(one.target, state, inside, splits=False))
            if one.op.endswith("&") and (path.isdigit() or path == "-"):
                continue  # a copy of another stream
            found.append(Redirection(one.op, one.fd, resolved(path, state.cwd)))
        return tuple(found)

    def _values(
        self, word: Word, state: ShellState, inside: list[Sequence_], *, splits: bool = True
    ) -> list[str]:
        """Give the words that one word becomes; what it substitutes is added to `inside`."""
        texts: list[str] = []
        for part in word.parts:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, Variable):
                texts.append(_value(part, state))
            else:
                inside.append(part.script)
                texts.append(self._substituted(part, state))
        text = "".join(texts)[:_MAX_TEXT]
        first = word.parts[0] if word.parts else ""
        is_split = splits and len(word.parts) == 1 and not word.is_quoted
        if is_split and isinstance(first, Variable) and first.is_bare:
            return text.split() or ([text] if text else [])
        if is_split and isinstance(first, Substitution) and text != first.text:
            return text.split()
        if splits and not word.is_quoted and "{" in text and ("," in text or ".." in text):
            return _braces(text)
        return [text]

    def _substituted(self, part: Substitution, state: ShellState) -> str:
        """Give what a substitution prints, where that can be told; else its own text."""
        if part.text.startswith(("<(", ">(")):
            return "/dev/fd/63"
        last: Command | None = None
        if len(part.script.nodes) == 1 and self._left > 0:
            self._left -= 1
            # `_node` yields what a wrapper wraps last: that is what prints.
            for one in self._node(part.script.nodes[0], state.copy(), ("$()",) * 2, None):
                last = one
                if self._left <= 0:
                    break
        if last is not None:
            if last.name == "pwd":
                return last.cwd
            if last.name == "mktemp":
                return "/tmp/mktemp"  # noqa: S108 — a name in a text, no file
            if last.name in _WHERE and last.operands:
                return last.operands[-1]
            if last.name == "git" and "--show-toplevel" in last.args:
                return last.cwd
            known = printed(last)
            if known is not None:
                return known.strip("\n")
        return part.text


def _value(variable: Variable, state: ShellState) -> str:
    name = variable.name
    if name in state.variables:
        return state.variables[name]
    if name == "PWD":
        return state.cwd
    if name == "HOME":
        return "~"
    return variable.default if variable.default is not None else f"${name}"


def _evidence(inner: Command, outer: Command) -> str:
    """Give the inner command's text where it stands as it is in the outer one."""
    return inner.text if inner.text and inner.text in outer.text else outer.text


def _braces(text: str) -> list[str]:
    """Expand the first braces that hold a comma; more than one pair are expanded in turn."""
    begin = text.find("{")
    end = text.find("}", begin)
    inner = text[begin + 1 : end] if end > begin else ""
    if (found := _RANGE.fullmatch(inner)) is not None:
        first, last = int(found[1]), int(found[2])
        numbers = range(first, min(last, first + _MAX_LOOP) + 1)
        return [f"{text[:begin]}{one}{text[end + 1 :]}" for one in numbers] or [text]
    if "," not in inner or "{" in inner or text[begin - 1 : begin] == "$":
        return [text]
    options = inner.split(",")[:_MAX_LOOP]
    return [f"{text[:begin]}{one}{text[end + 1 :]}" for one in options]
