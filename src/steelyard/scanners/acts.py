"""What an agent did, as values: commands it ran, files it touched, places it reached."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Redirection:
    """Where a command's stream goes, the path resolved."""

    op: str
    fd: int | None
    path: str


@dataclass(frozen=True, slots=True)
class Command:
    """One program with its arguments: variables, quotes and wrappers are gone."""

    name: str
    """Without folders: `rm` for `/bin/rm`."""
    args: tuple[str, ...]
    text: str
    """As written in the step: the evidence."""
    cwd: str = "."
    """`.` is where the agent began, wherever that is."""
    redirections: tuple[Redirection, ...] = ()
    stdin: str | None = None
    """The text it reads, where that is known: a here-document, what `echo` pipes in."""
    upstream: Command | None = None
    """What its input is piped from."""
    via: tuple[str, ...] = ()
    """What it was wrapped in, outermost first: `sudo`, `xargs`, `bash`, `base64`, `ssh`."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables set for it alone."""
    exported: tuple[tuple[str, str], ...] = ()
    """Variables that it sets for what comes after: `export A=b`."""

    @property
    def operands(self) -> list[str]:
        """The arguments that are no options; all of those after `--`."""
        found: list[str] = []
        for place, one in enumerate(self.args):
            if one == "--":
                return found + list(self.args[place + 1 :])
            if not one.startswith("-") or one == "-":
                found.append(one)
        return found

    def has(self, letter: str, *words: str) -> bool:
        """True where a short option has that letter, or a long one is among the words."""
        for one in self.args:
            if one == "--":
                return False
            if one.startswith("--"):
                if one.partition("=")[0] in words:
                    return True
            elif one.startswith("-") and (
                one in words or (letter and letter in one[1:] and len(one) <= 8)
            ):
                return True
        return False

    def option(self, *names: str) -> str | None:
        """Give the value of an option, as the next word, after `=`, or glued to its letter."""
        for place, one in enumerate(self.args):
            for name in names:
                if one == name and place + 1 < len(self.args):
                    return self.args[place + 1]
                if name.startswith("--") and one.startswith(f"{name}="):
                    return one[len(name) + 1 :]
                if len(name) == 2 and len(one) > 2 and one.startswith(name):
                    return one[2:]
        return None


class How(StrEnum):
    """What was done to a file."""

    READ = "read"
    WRITE = "write"
    APPEND = "append"
    EDIT = "edit"
    DELETE = "delete"
    MODE = "mode"


@dataclass(frozen=True, slots=True)
class Touch:
    """A file or folder that was read, written or removed."""

    how: How
    path: str
    """Resolved: `/…`, `~/…`, or relative to where the agent began."""
    text: str
    """The evidence."""
    content: str | None = None
    """What is written, or put in place of `old`; None where that is not known."""
    old: str | None = None
    """Of an edit: what stood there; None where that is not known."""
    is_recursive: bool = False
    by: str = ""
    """The command or tool that did it."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A place on a network that was called."""

    host: str
    """In lower case, without brackets and port; empty where it is not known."""
    url: str
    text: str
    sends: tuple[str, ...] = ()
    """What is sent along, as far as it is known: data, headers, files as `@path`."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """A program's text that is run as it is, in another language than the shell."""

    language: str
    source: str
    text: str


Act = Command | Touch | Reach | Code


def words(text: str) -> frozenset[str]:
    """Give the words of a text, for tables that are read better in lines."""
    return frozenset(text.split())
