"""Make validators of what the pack says; every problem is found before any is reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from steelyard.benchmarks.pack.schema import ScoringSpec
from steelyard.benchmarks.pack.validators.choices import make_choice
from steelyard.benchmarks.pack.validators.contract import Validator
from steelyard.benchmarks.pack.validators.files import (
    make_file_content,
    make_file_exists,
    make_file_tree,
)
from steelyard.benchmarks.pack.validators.functions import make_python
from steelyard.benchmarks.pack.validators.judge import make_judge
from steelyard.benchmarks.pack.validators.likeness import make_fuzzy, make_token_f1
from steelyard.benchmarks.pack.validators.making import Making, TemplateSet
from steelyard.benchmarks.pack.validators.numbers import make_number
from steelyard.benchmarks.pack.validators.programs import make_code, make_command
from steelyard.benchmarks.pack.validators.structured import (
    make_json_equals,
    make_json_path,
    make_json_schema,
)
from steelyard.benchmarks.pack.validators.texts import (
    make_contains,
    make_exact,
    make_one_of,
    make_regex,
)
from steelyard.benchmarks.pack.validators.tool_calls import make_tool_calls

MAKERS: Final[Mapping[str, Callable[[Making, Any], Validator]]] = MappingProxyType(
    {
        "exact": make_exact,
        "one_of": make_one_of,
        "contains": make_contains,
        "regex": make_regex,
        "number": make_number,
        "choice": make_choice,
        "fuzzy": make_fuzzy,
        "token_f1": make_token_f1,
        "json_equals": make_json_equals,
        "json_schema": make_json_schema,
        "json_path": make_json_path,
        "file_exists": make_file_exists,
        "file_content": make_file_content,
        "file_tree": make_file_tree,
        "command": make_command,
        "code": make_code,
        "python": make_python,
        "judge": make_judge,
        "tool_calls": make_tool_calls,
    }
)
"""What makes a validator of each type; its schema is in `schema_validators`."""


def build_validators(scoring: ScoringSpec, root: Path, templates: TemplateSet) -> list[Validator]:
    """Make the validators of a pack, in order, named apart."""
    specs: Sequence[Any] = scoring.validators
    names = _named(specs, templates)
    validators = [
        MAKERS[spec.type](Making(root, number, names[number], specs, names, templates), spec)
        for number, spec in enumerate(specs)
    ]
    if sum(validator.weight for validator in validators) <= 0:
        templates.problems.append(
            templates.document.problem(
                "all weights are 0", "scoring", "validators", remedy="give one of them a weight"
            )
        )
    return validators


def _named(specs: Sequence[Any], templates: TemplateSet) -> list[str]:
    """Give each validator its own name: the one written, else its type, numbered."""
    taken = {spec.name for spec in specs if spec.name is not None}
    names: list[str] = []
    for number, spec in enumerate(specs):
        name = spec.name or spec.type
        if spec.name is None:
            count = 1
            while name in taken:
                count += 1
                name = f"{spec.type}-{count}"
            taken.add(name)
        elif name in names:
            path = ("scoring", "validators", number, "name")
            message = f"two validators are named {name!r}"
            templates.problems.append(templates.document.problem(message, *path))
        names.append(name)
    return names
