"""The schemas of all validators: one table that everything reads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import Field

from steelyard.benchmarks.pack.schema_validators.base import ValidatorSpec
from steelyard.benchmarks.pack.schema_validators.files import (
    FileContentSpec,
    FileExistsSpec,
    FileTreeSpec,
)
from steelyard.benchmarks.pack.schema_validators.judging import JudgeValidatorSpec
from steelyard.benchmarks.pack.schema_validators.programs import CodeSpec, CommandSpec, PythonSpec
from steelyard.benchmarks.pack.schema_validators.structured import (
    JsonEqualsSpec,
    JsonPathSpec,
    JsonSchemaSpec,
)
from steelyard.benchmarks.pack.schema_validators.texts import (
    ChoiceSpec,
    ContainsSpec,
    ExactSpec,
    FuzzySpec,
    NumberSpec,
    OneOfSpec,
    RegexSpec,
    TokenF1Spec,
)
from steelyard.benchmarks.pack.schema_validators.tool_calls import ToolCallsSpec

AnyValidatorSpec = Annotated[
    ExactSpec
    | OneOfSpec
    | ContainsSpec
    | RegexSpec
    | NumberSpec
    | ChoiceSpec
    | FuzzySpec
    | TokenF1Spec
    | JsonEqualsSpec
    | JsonSchemaSpec
    | JsonPathSpec
    | FileExistsSpec
    | FileContentSpec
    | FileTreeSpec
    | CommandSpec
    | CodeSpec
    | PythonSpec
    | JudgeValidatorSpec
    | ToolCallsSpec,
    Field(discriminator="type"),
]
"""What `scoring.validators` holds."""

VALIDATOR_MODELS: Final[Mapping[str, type[ValidatorSpec]]] = MappingProxyType(
    {
        "exact": ExactSpec,
        "one_of": OneOfSpec,
        "contains": ContainsSpec,
        "regex": RegexSpec,
        "number": NumberSpec,
        "choice": ChoiceSpec,
        "fuzzy": FuzzySpec,
        "token_f1": TokenF1Spec,
        "json_equals": JsonEqualsSpec,
        "json_schema": JsonSchemaSpec,
        "json_path": JsonPathSpec,
        "file_exists": FileExistsSpec,
        "file_content": FileContentSpec,
        "file_tree": FileTreeSpec,
        "command": CommandSpec,
        "code": CodeSpec,
        "python": PythonSpec,
        "judge": JudgeValidatorSpec,
        "tool_calls": ToolCallsSpec,
    }
)
"""The schema of each type; `validators/build.py` has what makes a validator of it."""
