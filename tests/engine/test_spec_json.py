"""What goes over the executor's seam comes back the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.components.harness import Step
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.components.values import Trust, Usage
from steelyard.engine.spec import ExecutionResult, PhaseTimes
from steelyard.engine.spec_json import (
    NotAMessage,
    result_from_bytes,
    result_to_bytes,
    spec_from_bytes,
    spec_to_bytes,
)
from tests.engine.fakes import spec

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def test_a_spec_survives_the_way_there() -> None:
    assert spec_from_bytes(spec_to_bytes(spec())) == spec()


@given(
    outcome=st.sampled_from(Outcome),
    answer=st.none() | TEXT,
    trust=st.none() | st.sampled_from(Trust),
    codes=st.lists(st.sampled_from(IssueCode), max_size=3),
    cost=st.none() | st.floats(0, 1e6),
)
def test_a_result_survives_the_way_back(
    outcome: Outcome,
    answer: str | None,
    trust: Trust | None,
    codes: list[IssueCode],
    cost: float | None,
) -> None:
    result = ExecutionResult(
        outcome=outcome,
        metrics={"passed": True, "score": 0.5},
        answer=answer,
        issues=tuple(Issue.of(code, Phase.RUN, "why") for code in codes),
        usage=Usage(1, 2, 3, 4, 5, cost),
        times=PhaseTimes(0.1, 0.2, 0.3, 0.4, 0.5),
        trust=trust,
        environment={"provider": "fake", "image": None, "digest": None},
        steps=(Step("agent", "hello", {"n": 1}),),
        request_fault="401",
        model_calls_succeeded=2,
    )
    assert result_from_bytes(result_to_bytes(result)) == result


@given(st.binary(max_size=60))
def test_other_bytes_are_refused_by_name(data: bytes) -> None:
    with pytest.raises(NotAMessage):
        spec_from_bytes(data)
    with pytest.raises(NotAMessage):
        result_from_bytes(data)


def test_a_newer_version_is_refused_by_name() -> None:
    newer = spec_to_bytes(spec()).replace(b"execution-spec/1", b"execution-spec/9")
    with pytest.raises(NotAMessage, match="execution-spec/9"):
        spec_from_bytes(newer)


def test_half_a_spec_is_refused() -> None:
    with pytest.raises(NotAMessage, match="not a whole"):
        spec_from_bytes(b'{"schema":"execution-spec/1","request":{}}')
