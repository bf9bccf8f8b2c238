"""A group of commands that stand in a table of strings; each is imported when it is used."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command: where it lives and what it does, as strings."""

    target: str
    """`module:attribute`, imported when used."""
    summary: str


class LazyGroup(click.Group):
    """A group whose commands stand in a table of strings; `--help` imports none of them."""

    def __init__(self, *args: Any, table: Mapping[str, CommandRow], **kwargs: Any) -> None:
        """Take the commands' table beside what every group takes."""
        super().__init__(*args, **kwargs)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the table's order."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None where there is none of that name."""
        row = self._table.get(cmd_name)
        if row is None:
            return None
        module, _, attribute = row.target.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{row.target} is no command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name; offer near names for an unknown one."""
        name = args[0]
        if name not in self._table and not name.startswith("-"):
            near = difflib.get_close_matches(name, list(self._table), n=1)
            hint = f"did you mean {near[0]}?" if near else f"commands: {', '.join(self._table)}"
            raise click.UsageError(f"no such command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands from its strings."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.summary) for name, row in self._table.items()])
