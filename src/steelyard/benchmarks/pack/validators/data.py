"""Data of a pack whose texts are templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.benchmarks.pack.template import Template
from steelyard.benchmarks.pack.validators.contract import value_of
from steelyard.benchmarks.pack.validators.making import Making


@dataclass(frozen=True, slots=True)
class DataTemplate:
    """Lists and mappings as written, each text a compiled template."""

    shape: Any
    is_constant: bool

    def value(self, fields: Mapping[str, Any]) -> Any:
        """Give the data of a case; raise `AttemptFault` where a template cannot be rendered."""
        return self.shape if self.is_constant else _filled(self.shape, fields)


def compiled_data(making: Making, source: Any, *path: str | int) -> DataTemplate:
    """Compile the texts in data at a field; keys are taken as they are."""
    templates: list[Template] = []

    def compiled(part: Any, *at: str | int) -> Any:
        if isinstance(part, str):
            template = making.compiled(part, *at)
            templates.append(template)
            return template.source if template.is_constant else template
        if isinstance(part, dict):
            return {key: compiled(value, *at, key) for key, value in part.items()}
        if isinstance(part, list):
            return [compiled(value, *at, number) for number, value in enumerate(part)]
        return part

    shape = compiled(source, *path)
    return DataTemplate(shape, all(template.is_constant for template in templates))


def _filled(part: Any, fields: Mapping[str, Any]) -> Any:
    if isinstance(part, Template):
        return value_of(part, fields)
    if isinstance(part, dict):
        return {key: _filled(value, fields) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(value, fields) for value in part]
    return part
