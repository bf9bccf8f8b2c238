"""Every issue code stands in the tables, and comes from somewhere: none is a word alone."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Final

import steelyard
from steelyard.analyzers.failures.classes import CLASS_OF_CODE
from steelyard.components.issues import SEVERITY, IssueCode, Outcome
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.fakes import FakeHarness
from tests.engine.launching import records, request, run_all
from tests.engine.test_attempt import codes, raising, run

SRC: Final = Path(steelyard.__file__).parent
SPEAK_OF_CODES: Final = (
    "components/issues.py",
    "analyzers/failures/",
    "engine/retries.py",
    "results/reuse.py",
    "testing/",
)
"""What looks codes up, or makes them for tests."""
FROM_HARNESSES: Final = {IssueCode.TURN_LIMIT}
"""Only an agent scaffold counts turns: those that are plug-ins raise it."""


def _raised() -> set[str]:
    found = set()
    for path in SRC.rglob("*.py"):
        if path.relative_to(SRC).as_posix().startswith(SPEAK_OF_CODES):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found |= {node.attr} if node.value.id == "IssueCode" else set()
    return found


def test_every_code_is_in_every_table_and_is_raised_somewhere() -> None:
    assert set(SEVERITY) == set(CLASS_OF_CODE) == set(IssueCode)
    silent = {code for code in IssueCode if code.name not in _raised()}
    assert silent <= FROM_HARNESSES


def test_a_package_that_is_not_installed_is_named_and_not_tried_again() -> None:
    result = run(FakeHarness(raising(ModuleNotFoundError("No module named 'x'", name="x"))))
    assert codes(result) == [IssueCode.DEPENDENCY_MISSING]
    assert "'x' is not installed" in result.issues[0].message
    assert result.outcome is Outcome.FAILED_FATAL


def test_calls_without_token_counts_are_said_with_the_attempt(tmp_path: Path) -> None:
    one = request(harness={"id": "chat"}, benchmark={"tasks": 2})
    with MockEndpoint("--text", "right", "--fault", "wrong_usage:how=missing,first=1") as endpoint:
        model = {"id": "m", "base_url": endpoint.url}
        result = run_all(tmp_path, one | {"model": model}, task_concurrency=1)
    first, second = records(result)
    (issue,) = first.issues
    assert (issue.code, first.outcome) == (IssueCode.USAGE_UNKNOWN, Outcome.SCORED)
    assert issue.message.startswith("1 of 1 model calls came without token counts")
    assert first.usage.cost_usd is None
    assert second.issues == ()
