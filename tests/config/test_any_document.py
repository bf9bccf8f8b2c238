"""Whatever stands in a file: it resolves, or it is bad input. Never another error."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.components.known import REGISTRY
from steelyard.config.errors import BadInput
from steelyard.config.resolve import InvalidSettings, resolve_orchestration
from steelyard.engine.every_problem import with_plan_problems

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "task_concurrency": 4,
    "runtime": {"provider_limits": {"sandbox": 1}, "secret_env": ["A"], "progress": "none"},
    "budget": {"usd": 1},
    "prices": {"m": {"input_per_mtok": 1, "output_per_mtok": 2}},
    "defaults": {
        "model": {"id": "m", "api_key": "${A}", "params": {"x": [1]}, "extra_headers": {"a": "b"}},
        "harness": {"id": "chat"},
        "runtime": {"reuse": True, "reuse_run_id": "r"},
    },
    "requests": [
        {
            "name": "a",
            "benchmark": {"id": "humaneval", "x": {"token": "t"}},
            "execution": {
                "attempts": {"k": 2},
                "retry_pattern_list": ["a"],
                "recipes": [],
                "timeout_multiplier": {"run": 2},
                "shard": "1/2",
            },
            "runtime": {"reuse": False},
            "output": {"run_name": "g", "run_id": "r"},
        },
        {"name": "b", "benchmark": {"id": "humaneval"}, "environment": {"id": "sandbox"}},
    ],
}

_SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, width=16)
    | st.sampled_from(["", "a", "A", "nul", "${A}", "${B}", "x${A}", "$${", "(", "3", "http://[",
                       "../x", "https://u:p@h/?q=1", "\U0001f389", "1/2", "9/2", "params", "auto"])
)  # fmt: skip
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "params", "name", "k", "headers", "execution", "reuse", "${A}"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, below in items:
        found += places(below, (*path, key))
    return found


PLACES = places(DOCUMENT)


def put(document: Any, path: tuple[Any, ...], value: Any) -> None:
    """Set what stands at a path, where an earlier change has left the way to it."""
    with suppress(KeyError, IndexError, TypeError):
        holder = document
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = value


def refusal(file: Path) -> BadInput | None:
    try:
        resolve_orchestration(
            file, environ={"A": "secret-value-1"}, cwd=file.parent, components=REGISTRY
        )
    except InvalidSettings as error:
        return with_plan_problems(error)
    except BadInput as error:
        return error
    return None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), _VALUES), min_size=1, max_size=4))
def test_a_document_with_anything_anywhere_resolves_or_is_bad_input(tmp_path, changes) -> None:
    document = copy.deepcopy(DOCUMENT)
    for path, value in changes:
        put(document, path, value)
    file = tmp_path / "o.json"
    file.write_text(json.dumps(document))
    error = refusal(file)
    if error is not None:
        assert error.problems
        assert all(problem.where.file or problem.where.field for problem in error.problems)
        assert "secret-value-1" not in str(error)


def test_the_document_that_is_changed_is_good(tmp_path: Path) -> None:
    file = tmp_path / "o.json"
    file.write_text(json.dumps(DOCUMENT))
    assert refusal(file) is None
