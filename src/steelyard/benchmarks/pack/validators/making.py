"""What a validator is made with: its place in the pack, its templates, where problems go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from steelyard.benchmarks.pack.document import Document
from steelyard.benchmarks.pack.paths import PathProblem, file_in, folder_in
from steelyard.benchmarks.pack.schema_validators.base import TextValidatorSpec, ValidatorSpec
from steelyard.benchmarks.pack.template import MALFORMED, Template, compile_template
from steelyard.benchmarks.pack.template_language import TemplateProblem
from steelyard.benchmarks.pack.validators.contract import rendered
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.config.errors import Problem

_VALIDATORS: Final = ("scoring", "validators")


class TemplateSet:
    """Compiles the templates of a pack, keeping their problems and what they read."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self.required: dict[str, tuple[str | int, ...]] = {}
        """Each variable that a template must find, and the first template that reads it."""
        self.faulty: set[str | int | None] = set()
        """The numbers of the validators of which a problem was said."""
        self.unreadable: set[str | int | None] = set()
        """Those of them that have a malformed template: no case can be held against them."""

    def compile(self, source: Any, *path: str | int) -> Template:
        """Compile the text at a path; a malformed one is kept as a problem."""
        text = source if isinstance(source, str) else str(source)
        try:
            template = compile_template(text)
        except TemplateProblem as error:
            self.problems.append(
                self.document.problem(error.message, *path, remedy=error.remedy, line=error.line)
            )
            number = path[2] if path[:2] == _VALIDATORS else None
            self.faulty.add(number)
            self.unreadable.add(number)
            return MALFORMED
        for name in template.required:
            self.required.setdefault(name, path)
        return template

    def maybe(self, source: Any, *path: str | int) -> Template | None:
        """Compile the text at a path where there is one."""
        return None if source is None else self.compile(source, *path)

    def each(self, sources: Any, *path: str | int) -> list[Template]:
        """Compile every text of a list, or the one text."""
        if not isinstance(sources, list):
            return [self.compile(sources, *path)]
        return [self.compile(source, *path, number) for number, source in enumerate(sources)]


@dataclass(frozen=True, slots=True)
class Making:
    """One validator of a pack while it is made."""

    root: Path
    """The pack's folder."""
    number: int
    """Its place among the validators."""
    name: str
    specs: Sequence[ValidatorSpec]
    """Of all validators."""
    names: Sequence[str]
    templates: TemplateSet

    def problem(self, message: str, *path: str | int, remedy: str | None = None) -> None:
        """Keep a problem at a field of the validator."""
        document = self.templates.document
        self.templates.faulty.add(self.number)
        self.templates.problems.append(
            document.problem(message, "scoring", "validators", self.number, *path, remedy=remedy)
        )

    def compiled(self, source: Any, *path: str | int) -> Template:
        """Compile the template of a field."""
        return self.templates.compile(source, "scoring", "validators", self.number, *path)

    def maybe(self, source: Any, *path: str | int) -> Template | None:
        """Compile the template of a field where there is one."""
        return None if source is None else self.compiled(source, *path)

    def each(self, sources: Any, *path: str | int) -> list[Template]:
        """Compile every template of a list, or the one."""
        return self.templates.each(sources, "scoring", "validators", self.number, *path)

    def path(self, source: str | None, *path: str | int) -> PackPath | None:
        """Compile the template of a path of the pack where there is one."""
        template = self.maybe(source, *path)
        return None if template is None else PackPath(self.root, template)

    def stdout_of(self, spec: TextValidatorSpec) -> str | None:
        """Name the `command` validator whose output is read, where `on` asks for it."""
        if spec.on != "stdout":
            return None
        above = [n for n in range(self.number) if getattr(self.specs[n], "type", "") == "command"]
        if not above:
            self.problem(
                "there is no command validator above whose output could be read",
                "on",
                remedy="put a validator of type command before it",
            )
            return None
        return self.names[above[-1]]


@dataclass(frozen=True, slots=True)
class PackPath:
    """A path of the pack, perhaps different for each case."""

    root: Path
    template: Template
    _known: dict[str, Path] = field(default_factory=dict)
    """What was looked at already: walking a folder once is enough."""

    def folder(self, fields: Mapping[str, Any]) -> Path:
        """Give the folder of a case; raise `AttemptFault` where there is none."""
        return self._checked(folder_in, fields)

    def file(self, fields: Mapping[str, Any]) -> Path:
        """Give the file of a case; raise `AttemptFault` where there is none."""
        return self._checked(file_in, fields)

    def _checked(self, look_up: Any, fields: Mapping[str, Any]) -> Path:
        text = rendered(self.template, fields)
        if text not in self._known:
            try:
                self._known[text] = look_up(self.root, text)
            except PathProblem as error:
                raise AttemptFault(IssueCode.TASK_INVALID, str(error)) from error
        return self._known[text]
