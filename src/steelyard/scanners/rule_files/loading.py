"""Read a file of rules: all that is wrong with it at once, each fault at its place."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import orjson

from steelyard.components.registry import Kind, known_ids
from steelyard.config.errors import Problem
from steelyard.config.resolve import InvalidSettings
from steelyard.config.source import plain, read_file
from steelyard.config.validation import conform, in_order
from steelyard.scanners.rule_files.schema import SCHEMA, RuleFile


@dataclass(frozen=True, slots=True)
class ReadRules:
    """A file of rules with a digest of what it says: comments and order of keys aside."""

    file: RuleFile
    digest: str


def read_rules(path: Path, *, shown: str | None = None) -> ReadRules:
    """Read a file of rules, YAML or JSON by its suffix.

    Raises:
        BadInput: everything that is wrong with it, at once.
    """
    root = read_file(path, layer="rules", shown=shown)
    if not isinstance(root.value, dict):
        remedy = f"begin with `schema: {SCHEMA}`"
        problem = Problem("a file of rules is a mapping", root.origin.where, remedy=remedy)
        raise InvalidSettings.of([problem])
    problems: list[Problem] = []
    conform(root, RuleFile, problems)
    name = root.value.get("name")
    if name is not None and name.value in known_ids(Kind.SCANNER):
        problems.append(
            Problem(
                f"there is a scanner {name.value!r} already", name.origin.where,
                remedy="give this one a name of its own",
            )
        )  # fmt: skip
    if problems:
        raise InvalidSettings.of(in_order(problems))
    data = plain(root)
    written = orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    file = RuleFile.model_validate(data, strict=True)
    return ReadRules(file, hashlib.sha256(written).hexdigest()[:12])
