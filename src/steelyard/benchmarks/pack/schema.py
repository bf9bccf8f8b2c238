"""The schema of `pack.yaml` (`pack/v1`), as people write it.

Texts marked as templates are compiled by `template.py`; paths are resolved by `paths.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    model_validator,
)

from steelyard.components.id_forms import PACK_FILE as PACK_FILE

SCHEMA: Final = "pack/v1"

Text = Annotated[str, StringConstraints(min_length=1)]
Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$", max_length=80)]
ValidatorName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Scalar = bool | int | float | str
"""Compared as its text; may be a template."""
Argv = Annotated[list[Text | int | float], Field(min_length=1)]
"""A program and its arguments; no shell."""
Weight = Annotated[float, Field(ge=0, le=1e6)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Strict(BaseModel):
    """Refuses unknown fields; never changes after it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MessageSpec(Strict):
    """One turn of what the agent is shown."""

    role: Literal["system", "user", "assistant"]
    content: Text
    """A template."""


class ReferenceFiles(Strict):
    """A folder that `oracle` lays over the working folder, then a command it runs there."""

    files: Text | None = None
    """A template of a path."""
    command: Argv | None = None
    answer: Scalar | None = None
    """A template."""

    @model_validator(mode="after")
    def _names_something(self) -> ReferenceFiles:
        if self.files is None and self.command is None and self.answer is None:
            raise ValueError("give at least one of files, command and answer")
        return self


class EnvironmentSpec(Strict):
    """What a case needs; a request may only tighten it."""

    image: Text | None = None
    dockerfile: Text | None = None
    network: Literal["none", "open"] | None = None
    cpu: PositiveFloat | None = None
    memory_mb: PositiveInt | None = None


class LimitsSpec(Strict):
    """What the agent is granted."""

    turns: PositiveInt | None = None
    seconds: Seconds | None = None
    output_tokens: PositiveInt | None = None


class AnswerSpec(Strict):
    """Where the answer is found: in the response, a file, or what a command prints."""

    source: Annotated[Literal["response"] | None, Field(alias="from")] = None
    file: Text | None = None
    command: Argv | None = None
    extract: Pattern | None = None
    """Group 1 of the last match of this regular expression is the answer."""

    @model_validator(mode="after")
    def _has_one_source(self) -> AnswerSpec:
        given = [name for name in ("source", "file", "command") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError("give only one of from, file and command")
        return self


class OnFile(Strict):
    """A file of the working folder, as the agent left it."""

    file: Text


class ValidatorSpec(Strict):
    """What every validator has."""

    name: ValidatorName | None = None
    """Its metric is `validator.<name>`; the type by default, numbered where repeated."""
    weight: Weight = 1.0
    gate: bool = False
    """A failed gate makes the score 0."""


class TextValidatorSpec(ValidatorSpec):
    """A validator that reads a text."""

    on: Literal["answer", "stdout"] | OnFile = "answer"
    """`stdout` is what the nearest `command` validator above it printed."""


class ExactSpec(TextValidatorSpec):
    """The text is the expected one, outer white space aside."""

    type: Literal["exact"]
    expected: Scalar
    ignore_case: bool = False
    trim: bool = True


class OneOfSpec(TextValidatorSpec):
    """The text is one of the expected ones."""

    type: Literal["one_of"]
    expected: Annotated[list[Scalar], Field(min_length=1)] | Text
    """A list, or `{{ field }}` for a field that holds one."""
    ignore_case: bool = False
    trim: bool = True


class ContainsSpec(TextValidatorSpec):
    """The expected texts stand in the text."""

    type: Literal["contains"]
    expected: Annotated[list[Scalar], Field(min_length=1)] | Scalar
    """A text, a list, or `{{ field }}` for a field that holds either."""
    match: Literal["all", "any"] = "all"
    ignore_case: bool = False


class RegexSpec(TextValidatorSpec):
    """The pattern is found in the text (or, with `full`, matches all of it, trimmed)."""

    type: Literal["regex"]
    pattern: Pattern
    """Python's syntax; a template."""
    full: bool = False
    ignore_case: bool = False
    multiline: bool = False
    """`^` and `$` match at each line."""
    dotall: bool = False
    """`.` matches line ends too."""


class NumberSpec(TextValidatorSpec):
    """A number in the text is close: |a - e| <= max(tolerance, relative * |e|)."""

    type: Literal["number"]
    expected: int | float | Text
    tolerance: Annotated[float, Field(ge=0)] = 0.0
    relative: Annotated[float, Field(ge=0)] = 0.0
    find: Literal["last", "first", "only"] = "last"
    """Which number of the text; `only`: the text is a number and nothing else."""


class ChoiceSpec(TextValidatorSpec):
    """The text picks one of the options, by its letter or its words."""

    type: Literal["choice"]
    expected: Scalar
    """The letter, or the option's own words."""
    options: Annotated[list[Scalar], Field(min_length=2, max_length=26)] | Text | None = None
    """A list, or `{{ field }}`; without it, only letters are understood."""


class CommandSpec(ValidatorSpec):
    """A program's exit code, and perhaps its output, in the scorer's own environment."""

    type: Literal["command"]
    run: Argv
    """Templates. The answer is the program's standard input."""
    files: Text | None = None
    """A folder laid over the working folder for scoring alone; a template of a path."""
    exit_code: Annotated[int, Field(ge=0, le=255)] = 0
    stdout: Scalar | None = None
    """What it must print, outer white space aside; a template."""
    stdout_contains: Scalar | None = None
    """What must stand in its output; a template."""
    timeout_seconds: Seconds = 120.0


class CodeSpec(ValidatorSpec):
    """The Python code in the answer passes given tests, as in HumanEval."""

    type: Literal["code"]
    tests: Text | None = None
    """Python that defines `check(candidate)`, or statements that raise; a template."""
    tests_file: Text | None = None
    """The same in a file of the pack; a template of a path."""
    entry_point: Text | None = None
    """The function handed to `check`; a template. Without it the tests are statements."""
    before: str = ""
    """Code put before the answer's own; a template."""
    timeout_seconds: Seconds = 10.0

    @model_validator(mode="after")
    def _has_tests(self) -> CodeSpec:
        if (self.tests is None) == (self.tests_file is None):
            raise ValueError("give one of tests and tests_file")
        return self


AnyValidatorSpec = Annotated[
    ExactSpec
    | OneOfSpec
    | ContainsSpec
    | RegexSpec
    | NumberSpec
    | ChoiceSpec
    | CommandSpec
    | CodeSpec,
    Field(discriminator="type"),
]

LATER_VALIDATOR_TYPES: Final = (
    "json_equals",
    "json_schema",
    "json_path",
    "fuzzy",
    "token_f1",
    "file_exists",
    "file_content",
    "file_tree",
    "python",
    "tool_calls",
    "judge",
)
"""Names of the format that this version does not run yet."""


class ScoringSpec(Strict):
    """How an attempt is scored."""

    validators: Annotated[list[AnyValidatorSpec], Field(min_length=1)]
    strategy: Literal["weighted", "all", "any"] = "weighted"
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """`correct` is score >= threshold; None: the primary metric is `score` itself."""
    network: Literal["none"] = "none"


class PackFile(Strict):
    """A `pack.yaml`."""

    schema_: Annotated[Literal["pack/v1"], Field(alias="schema")]
    slug: Slug
    version: Annotated[int, Field(ge=0)]
    name: Text | None = None
    description: str | None = None
    prompt: Text | None = None
    """A template."""
    system: Text | None = None
    """A template."""
    messages: Annotated[list[MessageSpec], Field(min_length=1)] | None = None
    cases: Text | Annotated[list[Text], Field(min_length=1)] | list[dict[str, Any]]
    id: Text | None = None
    category: Text | None = None
    cluster: Text | None = None
    reference: ReferenceFiles | Scalar | None = None
    workspace: Text | None = None
    environment: EnvironmentSpec = EnvironmentSpec()
    limits: LimitsSpec = LimitsSpec()
    answer: AnswerSpec = AnswerSpec()
    scoring: ScoringSpec

    @model_validator(mode="after")
    def _has_one_prompt(self) -> PackFile:
        if self.messages is None and self.prompt is None:
            raise ValueError("give a prompt, or messages")
        if self.messages is not None and (self.prompt is not None or self.system is not None):
            raise ValueError("messages stand in place of prompt and system: give one or the other")
        return self
