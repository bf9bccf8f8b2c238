"""The schema of `pack.yaml` (`pack/v1`), as people write it.

Texts marked as templates are compiled by `template.py`; paths are resolved by `paths.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from steelyard.benchmarks.pack.judging.settings import JudgeSpec
from steelyard.benchmarks.pack.schema_validators import AnyValidatorSpec
from steelyard.benchmarks.pack.schema_validators.base import (
    Argv,
    Pattern,
    Scalar,
    Seconds,
    Slug,
    Strict,
    Text,
)
from steelyard.benchmarks.pack.schema_validators.tool_calls import ReferenceCall
from steelyard.components.id_forms import PACK_FILE as PACK_FILE

SCHEMA: Final = "pack/v1"


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
    tool_calls: list[ReferenceCall] | None = None
    """Calls of tools that stand in the trajectory of `oracle`; nothing is run."""

    @model_validator(mode="after")
    def _names_something(self) -> ReferenceFiles:
        given = (self.files, self.command, self.answer, self.tool_calls)
        if all(part is None for part in given):
            raise ValueError("give at least one of files, command, answer and tool_calls")
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


class ScoringSpec(Strict):
    """How an attempt is scored."""

    validators: Annotated[list[AnyValidatorSpec], Field(min_length=1)]
    strategy: Literal["weighted", "all", "any"] = "weighted"
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """`correct` is score >= threshold; None: the primary metric is `score` itself."""
    network: Literal["none"] = "none"
    mode: Literal["fresh", "reuse"] | None = None
    """`reuse`: scored in the agent's own environment, still open. None: in one of its own, where
    scoring needs any."""
    timed_out: Literal["failure", "score"] = "failure"
    """What becomes of an agent whose time ran out: no score, or that of what it had done."""


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
    judge: JudgeSpec | None = None
    scoring: ScoringSpec

    @model_validator(mode="after")
    def _has_one_prompt(self) -> PackFile:
        if self.messages is None and self.prompt is None:
            raise ValueError("give a prompt, or messages")
        if self.messages is not None and (self.prompt is not None or self.system is not None):
            raise ValueError("messages stand in place of prompt and system: give one or the other")
        return self
