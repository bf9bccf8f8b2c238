"""Make validators of what the pack says; every problem is found before any is reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from steelyard.benchmarks.pack.document import Document
from steelyard.benchmarks.pack.matching import BadPattern, matcher
from steelyard.benchmarks.pack.schema import (
    ChoiceSpec,
    CodeSpec,
    CommandSpec,
    ContainsSpec,
    ExactSpec,
    NumberSpec,
    OneOfSpec,
    RegexSpec,
    ScoringSpec,
    TextValidatorSpec,
    ValidatorSpec,
)
from steelyard.benchmarks.pack.template import Template, compile_template
from steelyard.benchmarks.pack.template_language import TemplateProblem
from steelyard.benchmarks.pack.validators.choices import Choice
from steelyard.benchmarks.pack.validators.contract import Validator
from steelyard.benchmarks.pack.validators.numbers import Number, as_number
from steelyard.benchmarks.pack.validators.programs import Code, Command, PackPath
from steelyard.benchmarks.pack.validators.texts import Contains, Exact, OneOf, Regex
from steelyard.config.errors import Problem


class TemplateSet:
    """Compiles the templates of a pack, keeping their problems and what they read."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self.required: dict[str, tuple[str | int, ...]] = {}
        """Each variable that a template must find, and the first template that reads it."""

    def compile(self, source: Any, *path: str | int) -> Template:
        """Compile the text at a path; a malformed one is kept as a problem."""
        text = source if isinstance(source, str) else str(source)
        try:
            template = compile_template(text)
        except TemplateProblem as error:
            self.problems.append(
                self.document.problem(error.message, *path, remedy=error.remedy, line=error.line)
            )
            return compile_template("")
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


def build_validators(scoring: ScoringSpec, root: Path, templates: TemplateSet) -> list[Validator]:
    """Make the validators of a pack, in order, named apart."""
    builder = _Builder(scoring, root, templates)
    validators = [builder.build(number, spec) for number, spec in enumerate(scoring.validators)]
    if sum(validator.weight for validator in validators) <= 0:
        templates.problems.append(
            templates.document.problem(
                "all weights are 0", "scoring", "validators", remedy="give one of them a weight"
            )
        )
    return validators


class _Builder:
    def __init__(self, scoring: ScoringSpec, root: Path, templates: TemplateSet) -> None:
        self._specs: Sequence[Any] = scoring.validators
        self._root = root
        self._templates = templates
        self._names = self._named()

    def _named(self) -> list[str]:
        """Give each validator its own name: the one written, else its type, numbered."""
        taken = {spec.name for spec in self._specs if spec.name is not None}
        names: list[str] = []
        for number, spec in enumerate(self._specs):
            name = spec.name or spec.type
            if spec.name is None:
                count = 1
                while name in taken:
                    count += 1
                    name = f"{spec.type}-{count}"
                taken.add(name)
            elif name in names:
                self._problem(f"two validators are named {name!r}", number, "name")
            names.append(name)
        return names

    def _problem(
        self, message: str, number: int, *path: str | int, remedy: str | None = None
    ) -> None:
        self._templates.problems.append(
            self._templates.document.problem(
                message, "scoring", "validators", number, *path, remedy=remedy
            )
        )

    def build(self, number: int, spec: ValidatorSpec) -> Validator:
        """Make one validator."""
        maker: Callable[[int, Any], Validator] = getattr(self, f"_{self._specs[number].type}")
        return maker(number, spec)

    def _text(self, number: int, spec: TextValidatorSpec) -> str | None:
        """Name the `command` validator whose output is read, where `on` asks for it."""
        if spec.on != "stdout":
            return None
        above = [n for n in range(number) if isinstance(self._specs[n], CommandSpec)]
        if not above:
            self._problem(
                "there is no command validator above whose output could be read",
                number,
                "on",
                remedy="put a validator of type command before it",
            )
            return None
        return self._names[above[-1]]

    def _compiled(self, source: Any, number: int, field: str) -> Template:
        return self._templates.compile(source, "scoring", "validators", number, field)

    def _maybe(self, source: Any, number: int, field: str) -> Template | None:
        return None if source is None else self._compiled(source, number, field)

    def _each(self, sources: Any, number: int, field: str) -> list[Template]:
        return self._templates.each(sources, "scoring", "validators", number, field)

    def _path(self, source: str | None, number: int, field: str) -> PackPath | None:
        template = self._maybe(source, number, field)
        return None if template is None else PackPath(self._root, template)

    def _exact(self, number: int, spec: ExactSpec) -> Validator:
        expected = self._compiled(spec.expected, number, "expected")
        return Exact(self._names[number], spec, self._text(number, spec), expected)

    def _one_of(self, number: int, spec: OneOfSpec) -> Validator:
        expected = self._each(spec.expected, number, "expected")
        return OneOf(self._names[number], spec, self._text(number, spec), expected)

    def _contains(self, number: int, spec: ContainsSpec) -> Validator:
        expected = self._each(spec.expected, number, "expected")
        if any(template.source == "" for template in expected):
            self._problem("every text contains the empty one", number, "expected")
        return Contains(self._names[number], spec, self._text(number, spec), expected)

    def _regex(self, number: int, spec: RegexSpec) -> Validator:
        pattern = self._compiled(spec.pattern, number, "pattern")
        if pattern.is_constant:
            try:
                matcher(pattern.source)
            except BadPattern as error:
                self._problem(str(error), number, "pattern")
        return Regex(self._names[number], spec, self._text(number, spec), pattern)

    def _number(self, number: int, spec: NumberSpec) -> Validator:
        expected = self._compiled(spec.expected, number, "expected")
        if expected.is_constant and as_number(expected.source) is None:
            self._problem(f"{spec.expected!r} is not a number", number, "expected")
        return Number(self._names[number], spec, self._text(number, spec), expected)

    def _choice(self, number: int, spec: ChoiceSpec) -> Validator:
        expected = self._compiled(spec.expected, number, "expected")
        options = self._each(spec.options, number, "options") if spec.options is not None else None
        if options is not None and len(options) == 1 and options[0].field is None:
            self._problem(
                "options are a list, or `{{ field }}` for a field that holds one",
                number,
                "options",
            )
        return Choice(self._names[number], spec, self._text(number, spec), expected, options)

    def _command(self, number: int, spec: CommandSpec) -> Validator:
        return Command(
            self._names[number],
            spec,
            self._each(spec.run, number, "run"),
            self._path(spec.files, number, "files"),
            self._maybe(spec.stdout, number, "stdout"),
            self._maybe(spec.stdout_contains, number, "stdout_contains"),
        )

    def _code(self, number: int, spec: CodeSpec) -> Validator:
        return Code(
            self._names[number],
            spec,
            self._maybe(spec.tests, number, "tests"),
            self._path(spec.tests_file, number, "tests_file"),
            self._maybe(spec.entry_point, number, "entry_point"),
            self._compiled(spec.before, number, "before"),
        )
