"""The scanner of a file of rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from steelyard.components.steps import Step
from steelyard.scanners.acts import Act, Command
from steelyard.scanners.leftovers import Leftover
from steelyard.scanners.reporting import Hit
from steelyard.scanners.rule_files.loading import read_rules
from steelyard.scanners.rule_files.rules import (
    Rule,
    Searches,
    compiled,
    hits_of,
    may_block,
    triggers_of,
)
from steelyard.scanners.rule_scanner import Judge, RuleScanner


class RuleFileScanner(RuleScanner):
    """Finds what a user's rules describe. `of_file` makes a class of it for each file."""

    id: ClassVar[str] = "rules"
    version: ClassVar[str] = "0"
    rules: ClassVar[tuple[Rule, ...]] = ()

    @classmethod
    def of_file(cls, path: Path, *, shown: str | None = None) -> type[RuleFileScanner]:
        """Make the class of a file: its id the file's name, its version of what the file says.

        Args:
            path: where it lies.
            shown: what messages call it.

        Raises:
            BadInput: everything that is wrong with the file.
        """
        read = read_rules(path, shown=shown)
        rules = compiled(read.file)
        members = {
            "__module__": cls.__module__,
            "__doc__": read.file.description or cls.__doc__,
            "id": read.file.name,
            "version": read.digest,
            "rules": rules,
            "blocks": may_block(rules),
            "triggers": triggers_of(read.file),
        }
        return type(f"{cls.__name__}_{read.digest}", (cls,), members)

    def judge(self) -> Judge:
        """Make the rules for one attempt."""
        return _Judge(self.rules)


class _Judge:
    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules, self._searches = rules, Searches()
        self._command: Command | None = None

    def of_act(self, act: Act) -> Iterator[Hit]:
        if isinstance(act, Command):
            self._command = act
        command = self._command
        if command is not None and act.text != command.text:
            command = None  # an edit by a tool, or a line of a program: no command did it
        yield from hits_of(self._rules, act, command, self._searches)

    def of_step(self, step: Step) -> Iterator[Hit]:
        self._command = None
        return iter(())

    def of_leftover(self, left: Leftover) -> Iterator[Hit]:
        return iter(())
