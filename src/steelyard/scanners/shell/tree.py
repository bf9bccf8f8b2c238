"""A shell script as values: commands, their words, where they read and write. No parser in it.

Words are not yet values: a variable's value, and the folder a command runs in, are known only
when the script is walked (`walking.py`), so that a parsed script can be kept and used again.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """`$NAME` or `${NAME:-default}` in a word."""

    name: str
    default: str | None = None
    is_bare: bool = True
    """True outside of double quotes, where its value is split into words."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(…)`, backquotes or `<(…)` in a word."""

    script: Sequence_
    text: str


Part = str | Variable | Substitution


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command; without quotes and backslashes."""

    parts: tuple[Part, ...]
    is_quoted: bool = False
    """True where any of it stood in quotes: braces and globs in it are text."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """Where a command reads from or writes to."""

    op: str
    """`<`, `>`, `>>`, `<>`, `>|`, `&>`, `&>>`, `>&`, `<<<`, or `<<` with the document in `body`."""
    fd: int | None
    target: Word
    body: str | None = None
    """Of a here-document: its text."""


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple command."""

    text: str
    """As written, here-documents left out."""
    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, the output of each the input of the next."""

    stages: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Sequence_:
    """Commands one after the other, whatever stands between them."""

    nodes: tuple[Node, ...]
    is_subshell: bool = False
    """True where folder and variables do not outlast it."""
    redirects: tuple[Redirect, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Loop:
    """A `for` loop: its variable takes each of the words."""

    variable: str
    words: tuple[Word, ...]
    body: Sequence_


@dataclass(frozen=True, slots=True)
class Function:
    """A function's definition; its body runs when it is called."""

    name: str
    body: Sequence_
    text: str = ""


Node = Simple | Pipeline | Sequence_ | Loop | Function

EMPTY = Sequence_(())
