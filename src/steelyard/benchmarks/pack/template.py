"""Templates of a pack: a small, bounded part of Jinja2.

A pack is hostile content and is rendered in the driver, so a template cannot call anything, import
anything, or grow without end. What it may hold is a list of node kinds, filters and tests; every
loop and every text it builds counts against a bound. It sees the case's fields, `attempt` and
`seed`: nothing else. An unknown variable is an error.

`{{ field }}` alone, the most frequent template, is a look-up and needs no engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from steelyard.benchmarks.pack.template_language import (
    MAX_LOOP_STEPS,
    MAX_OUTPUT_CHARS,
    TemplateProblem,
    bounded,
    budget,
    check_nodes,
    jinja_environment,
    optional_names,
)

ATTEMPT_VARIABLES: Final = frozenset({"attempt", "seed"})
MAX_SOURCE_CHARS: Final = 1024 * 1024
_FIELD_ALONE: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template."""

    source: str
    variables: frozenset[str]
    """Every name it reads."""
    required: frozenset[str]
    """Those that must be there: not asked about with `is defined` or `default`."""
    field: str | None
    """The name, where it is `{{ name }}` and nothing else."""
    _render: Callable[[Mapping[str, Any]], str] | None
    is_malformed: bool = False
    """True where it stands in for one that cannot be compiled: nothing can be said of its text."""

    @property
    def is_constant(self) -> bool:
        """True where it reads nothing."""
        return self._render is None and self.field is None and not self.is_malformed

    def render(self, values: Mapping[str, Any]) -> str:
        """Give the text.

        Raises:
            TemplateProblem: a value is missing or not of the kind that the template needs, or a
                bound was reached.
        """
        if self.field is not None:
            value = self.value(values)
            return value if type(value) is str else str(value)
        return self.source if self._render is None else self._render(values)

    def value(self, values: Mapping[str, Any]) -> Any:
        """Give the value itself where the template is `{{ name }}`, else the text."""
        if self.field is None:
            return self.render(values)
        try:
            return values[self.field]
        except KeyError:
            raise TemplateProblem(f"{self.field!r} is undefined", line=1) from None


MALFORMED: Final = Template("", frozenset(), frozenset(), None, None, is_malformed=True)


def compile_template(source: str) -> Template:
    """Compile a template.

    Raises:
        TemplateProblem: it is malformed, or uses what templates of a pack may not.
    """
    if len(source) > MAX_SOURCE_CHARS:
        raise TemplateProblem(f"the template is longer than {MAX_SOURCE_CHARS} characters")
    alone = _FIELD_ALONE.fullmatch(source)
    if alone:
        names = frozenset({alone[1]})
        return Template(source, names, names, alone[1], None)
    if not any(mark in source for mark in ("{{", "{%", "{#")):
        # Jinja drops one newline at the end; a constant must come out the same way.
        text = source.removesuffix("\n")
        return Template(text, frozenset(), frozenset(), None, None)
    return _compile_jinja(source)


def _compile_jinja(source: str) -> Template:
    from jinja2 import TemplateError, meta

    environment = jinja_environment()
    try:
        tree = environment.parse(source)
        check_nodes(tree)
        variables = frozenset(meta.find_undeclared_variables(tree))
        optional = optional_names(tree)
        code = environment.from_string(bounded(tree))
    except TemplateProblem:
        raise
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        raise TemplateProblem(f"malformed template: {error.message}", line=line) from error
    except (RecursionError, MemoryError, OverflowError, ValueError) as error:
        raise TemplateProblem(f"the template cannot be compiled: {type(error).__name__}") from error
    root = code.root_render_func
    new_context = code.new_context

    def render(values: Mapping[str, Any]) -> str:
        return _rendered(root, new_context, values)

    return Template(source, variables, variables - optional, None, render)


def _rendered(root: Any, new_context: Any, values: Mapping[str, Any]) -> str:
    from jinja2 import TemplateError

    budget.steps = MAX_LOOP_STEPS
    parts: list[str] = []
    size = 0
    try:
        for part in root(new_context(dict(values))):
            size += len(part)
            if size > MAX_OUTPUT_CHARS:
                raise TemplateProblem(f"it renders to more than {MAX_OUTPUT_CHARS} characters")
            parts.append(part)
    except TemplateProblem:
        raise
    except TemplateError as error:
        raise TemplateProblem(str(error.message)) from error
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise TemplateProblem(f"{type(error).__name__}: {error}") from error
    return "".join(parts)
