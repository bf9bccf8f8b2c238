"""Problems of a component's own schema are placed in the file that wrote its fields."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from steelyard.config.resolve import resolve_orchestration
from steelyard.config.source import plain, read_yaml
from steelyard.config.validation import FieldFault, described, nearest, problems_of


class Params(BaseModel):
    model_config = ConfigDict(extra="forbid")
    max_turns: PositiveInt = 10
    mode: Literal["fast", "thorough"] = "fast"


def test_component_fields_are_placed_where_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "o.yaml").write_text(
        "defaults:\n"
        "  harness: {mode: thorogh}\n"
        "requests:\n"
        "  - name: a\n"
        "    benchmark: {id: b}\n"
        "    harness: {id: h, max_turn: 3, max_turns: 0}\n"
        "    model: {id: m}\n"
    )
    found = resolve_orchestration(Path("o.yaml"), environ={}, cwd=tmp_path)
    with pytest.raises(ValidationError) as caught:
        Params.model_validate(found.orchestration.requests[0].harness.params)
    problems = problems_of(
        caught.value.errors(),
        found.provenance.root,
        Params,
        prefix=("requests", 0, "harness"),
    )
    assert sorted(str(problem) for problem in problems) == [
        "o.yaml:2:19 defaults.harness.mode: found the text 'thorogh'\n"
        "  expected one of: fast, thorough; did you mean thorough?",
        "o.yaml:6:22 requests[0].harness.max_turn: unknown field 'max_turn'\n"
        "  did you mean max_turns? allowed: max_turns, mode",
        "o.yaml:6:46 requests[0].harness.max_turns: found 0\n  expected a number above 0",
    ]


@pytest.mark.parametrize(
    ("name", "found"), [("Model", "model"), ("modle", "model"), ("xyz", None), ("LIMIT", "limit")]
)
def test_near_names_are_found_whatever_their_case(name: str, found: str | None) -> None:
    assert nearest(name, ["model", "limit"]) == found


def test_long_text_is_measured_not_cut_as_it_may_be_a_key() -> None:
    assert described(read_yaml("x" * 500, "f")) == "a text of 500 characters"


class Checked(BaseModel):
    low: int = 0
    high: int = 1
    name: str = "x"

    @field_validator("name")
    @classmethod
    def _named(cls, name: str) -> str:
        if name == "nobody":
            raise ValueError("nobody is no name")
        if name == "zero":
            raise AssertionError("zero is no name")
        return name

    @model_validator(mode="after")
    def _ordered(self) -> Checked:
        if self.high == 99:
            raise ValueError("99 is taken")
        if self.low > self.high:
            raise FieldFault("low is above high", "low", remedy="swap them")
        return self


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{low: 2}", "f:1:11 at.low: low is above high\n  swap them"),
        ("{name: nobody}", "f:1:12 at.name: nobody is no name"),
        ("{name: zero}", "f:1:12 at.name: zero is no name"),
        ("{high: 99}", "f:1:5 at: 99 is taken"),
    ],
)
def test_what_a_schema_checks_itself_is_said_in_its_words_at_its_field(
    text: str, said: str
) -> None:
    root = read_yaml(f"at: {text}", "f")
    with pytest.raises(ValidationError) as caught:
        Checked.model_validate(plain(root)["at"])
    problems = problems_of(caught.value.errors(), root, Checked, prefix=("at",))
    assert [str(problem) for problem in problems] == [said]
