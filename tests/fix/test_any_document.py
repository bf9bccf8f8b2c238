"""Whatever somebody hands us, reading it ends in a value or in problems that say where."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.config.source import Node
from steelyard.fix.frozen import freeze, frozen_document, frozen_from
from steelyard.fix.schema.control import checked_control
from steelyard.fix.schema.profile import checked_profile
from steelyard.fix.schema.reading import InvalidFixFile
from steelyard.fix.schema.review import checked_review
from steelyard.fix.schema.spec import checked_spec
from tests.fix.documents import SEED_PROFILE, SEED_SPEC, node, profile
from tests.fix.test_control_files import REVIEW, control

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["", " ", "..", "/", "a/../b", ".git", "min", "latency_ms", "-1", "${X}"])
)
names = st.text(max_size=6)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
READERS: list[tuple[Callable[[Node], Any], dict[str, Any]]] = [
    (checked_spec, SEED_SPEC),
    (checked_profile, SEED_PROFILE),
    (checked_review, REVIEW),
    (checked_control, control("expand")),
    (checked_control, control("insights")),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict | list):
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        for step, below in steps:
            found += places(below, (*path, step))
    return found


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
@pytest.mark.parametrize("number", range(len(READERS)))
def test_any_change_to_a_document_is_read_or_refused_with_places(
    number: int, data: st.DataObject
) -> None:
    read, good = READERS[number]
    document = deepcopy(good)
    *way, last = data.draw(st.sampled_from(places(document)))
    holder = document
    for step in way:
        holder = holder[step]
    holder[last] = data.draw(anything)
    root = node(json.loads(json.dumps(document)), "file.json")
    found = outcome(read, root)
    if isinstance(found, InvalidFixFile):
        assert found.problems
        assert all(problem.message for problem in found.problems)
        assert all(problem.where.file == "file.json" for problem in found.problems)
        assert all(problem.where.line for problem in found.problems)
    elif read is checked_spec:
        frozen = outcome(lambda spec: freeze(spec, profile()), found)
        if not isinstance(frozen, InvalidFixFile):
            assert frozen_from(json.loads(json.dumps(frozen_document(frozen)))) == frozen


def outcome(step: Callable[[Any], Any], given_to: Any) -> Any:
    try:
        return step(given_to)
    except InvalidFixFile as error:
        return error


@settings(deadline=None)
@given(anything)
def test_any_document_at_all_is_read_or_refused(document: Any) -> None:
    for read, _ in READERS:
        with pytest.raises(InvalidFixFile):
            read(node(document, "file.json"))
