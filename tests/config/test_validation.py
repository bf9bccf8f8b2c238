"""Problems of a component's own schema are placed in the file that wrote its fields."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, PositiveInt, ValidationError

from steelyard.config.resolve import resolve_orchestration
from steelyard.config.source import read_yaml
from steelyard.config.validation import described, nearest, problems_of


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
