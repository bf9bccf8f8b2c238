"""`steelyard schema`: the JSON Schema of a file format, generated from what reads it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import click

from steelyard.cli.options import output_options
from steelyard.cli.output import pairs_lines, print_json, say
from steelyard.config.errors import BadInput

SCHEMAS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "orchestration": "steelyard.config.schema.written:OrchestrationFile",
        "config": "steelyard.config.schema.written:ConfigFile",
        "request": "steelyard.config.schema.written:RequestPart",
        "resolved": "steelyard.config.schema.orchestration:Orchestration",
        "pack": "steelyard.benchmarks.pack.schema:PackFile",
        "evalset": "steelyard.evalset.manifest:Manifest",
        "fix-spec": "steelyard.fix.schema.spec:Spec",
        "fix-profile": "steelyard.fix.schema.profile:Profile",
        "fix-review": "steelyard.fix.schema.review:Review",
        "fix-control": "steelyard.fix.schema.control:Control",
        "scan-rules": "steelyard.scanners.rule_files.schema:RuleFile",
    }
)
"""Name → `module:Model`."""

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "orchestration": "the file that `steelyard launch` takes",
        "config": "steelyard.yaml and other configuration files",
        "request": "one of an orchestration's requests",
        "resolved": "an orchestration with every default filled in",
        "pack": "pack.yaml",
        "evalset": "the manifest that `steelyard evalset submit` takes",
        "fix-spec": "what a fix run measures and protects: `steelyard fix start --spec`",
        "fix-profile": "where and how its trials run: `steelyard setup --profile-file`",
        "fix-review": "an independent review: `steelyard fix run --review-file`",
        "fix-control": "a request to a run: `steelyard fix steer --control-file`",
        "scan-rules": "a scanner that is written as rules",
    }
)
"""What each name stands for."""


def schema_of(name: str) -> dict[str, Any]:
    """Give the JSON Schema of a format.

    Raises:
        BadInput: there is no format of that name.
    """
    if name not in SCHEMAS:
        from steelyard.config.validation import nearest

        near = nearest(name, SCHEMAS)
        hint = f"did you mean {near}? " if near else ""
        raise BadInput(f"unknown schema {name!r}", remedy=f"{hint}known: {', '.join(SCHEMAS)}")
    module, _, attribute = SCHEMAS[name].partition(":")
    model = getattr(importlib.import_module(module), attribute)
    from steelyard.config.reference import json_schema

    return json_schema(model)


@click.command()
@click.argument("name", required=False)
@output_options
def schema(name: str | None, as_json: bool, debug: bool) -> int:
    """Print the JSON Schema of the format NAME; without one, list the names."""
    if name is not None:
        print_json(schema_of(name))
    elif as_json:
        print_json({"schemas": list(SCHEMAS)})
    else:
        say("formats with a JSON Schema (`steelyard schema NAME` prints it):")
        for line in pairs_lines(MEANINGS):
            say(line)
    return 0
