"""A file of rules (`scan-rules/1`), as people write it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from steelyard.components.patterns import BadPattern, matcher
from steelyard.config.schema.request import Strict
from steelyard.config.validation import FieldFault

SCHEMA: Final = "scan-rules/1"
MAX_RULES: Final = 200
MAX_PATTERN_CHARS: Final = 500
_KEBAB: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def _kebab(value: str) -> str:
    if not _KEBAB.fullmatch(value):
        near = "-".join(re.findall(r"[a-z0-9]+", value.lower())) or "my-rule"
        raise FieldFault(f"{value!r} is no name in lower case with dashes", remedy=f"write {near}")
    return value


def _pattern(value: str) -> str:
    if len(value) > MAX_PATTERN_CHARS:
        said = f"a pattern of {len(value)} characters"
        raise FieldFault(said, remedy=f"at most {MAX_PATTERN_CHARS}")
    try:
        matcher(value)
    except BadPattern as error:
        raise FieldFault(str(error), remedy="write a regular expression of Python's `re`") from None
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise FieldFault("blank text", remedy="write something, or take the field out")
    return value


Name = Annotated[str, AfterValidator(_kebab)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Text = Annotated[str, AfterValidator(_not_blank)]
Patterns = Annotated[list[Pattern], Field(min_length=1)]
Texts = Annotated[list[Text], Field(min_length=1)]
Doing = Literal["read", "write", "append", "edit", "delete", "mode"]


class Unless(Strict):
    """What makes a rule find nothing: any of these is enough."""

    commands: Texts | None = None
    """Names of commands; `*` stands for any letters."""
    args: Patterns | None = None
    """Patterns of which one is found in an argument."""
    paths: Texts | None = None
    """Paths; `*` stays within a folder, `**` does not."""
    hosts: Texts | None = None
    """Hosts; `*` stands for any letters."""


class RuleSpec(Strict):
    """One rule: all that it names must hold of one thing that the agent did."""

    id: Name
    """Its name in the file; the category of what it finds, where `category` names none."""
    category: Name | None = None
    """A short word for what is found; by default the rule's id."""
    severity: Literal["info", "low", "medium", "high"]
    """How much it matters."""
    message: Text
    """One sentence for people."""
    confidence: Annotated[float, Field(gt=0, le=1)] = 0.9
    """How sure the rule is."""
    commands: Texts | None = None
    """Names of commands, without folders; `*` stands for any letters."""
    args: Patterns | None = None
    """Patterns, each of which is found in some argument of the command."""
    paths: Texts | None = None
    """Paths of which it touches one; `*` stays within a folder, `**` does not."""
    does: Annotated[list[Doing], Field(min_length=1)] | None = None
    """What is done to the path; by default anything."""
    content: Patterns | None = None
    """Patterns of which one is found in a line of what is written there."""
    hosts: Texts | None = None
    """Hosts of which it calls one; `*` stands for any letters."""
    unless: Unless | None = None
    """What makes it find nothing."""

    @model_validator(mode="after")
    def _says_what_it_looks_for(self) -> Self:
        if self.commands is None and self.paths is None and self.hosts is None:
            raise FieldFault(
                f"the rule {self.id!r} names neither commands nor paths nor hosts",
                remedy="add `commands: [rm]`, `paths: [/etc/**]` or `hosts: ['*.internal']`",
            )
        if self.args is not None and self.commands is None:
            raise FieldFault(f"the rule {self.id!r} has args, and no commands", "args",
                             remedy="add `commands`, with '*' for any")  # fmt: skip
        for name in ("does", "content"):
            if getattr(self, name) is not None and self.paths is None:
                raise FieldFault(f"the rule {self.id!r} has {name}, and no paths", name,
                                 remedy="add `paths`, with '**' for any")  # fmt: skip
        if self.paths is not None and self.hosts is not None:
            raise FieldFault(f"the rule {self.id!r} has both paths and hosts", "hosts",
                             remedy="write two rules")  # fmt: skip
        return self


class RuleFile(Strict):
    """A scanner, written as rules."""

    schema_: Annotated[Literal["scan-rules/1"], Field(alias="schema")]
    """The format: `scan-rules/1`."""
    name: Name
    """The scanner's id, in findings."""
    description: str | None = None
    """What it is for."""
    rules: Annotated[list[RuleSpec], Field(min_length=1, max_length=MAX_RULES)]
    """The rules; each finds by itself."""

    @model_validator(mode="after")
    def _rules_differ(self) -> Self:
        counts = Counter(rule.id for rule in self.rules)
        for index, rule in enumerate(self.rules):
            if counts[rule.id] > 1 and rule.id in {one.id for one in self.rules[:index]}:
                raise FieldFault(
                    f"two rules have the id {rule.id!r}", "rules", index, "id",
                    remedy="give each rule an id of its own",
                )  # fmt: skip
        return self
