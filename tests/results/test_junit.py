"""JUnit XML is valid whatever texts are in it, and stays small."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.components.issues import IssueCode, Outcome
from steelyard.results.comparison import compare_runs
from steelyard.results.gates import Gate, GateResult
from steelyard.results.junit import (
    MAX_TEXT_CHARS,
    _attribute,
    _content,
    comparison_junit,
    launch_junit,
)
from steelyard.results.records import Timing
from tests.results.comparing import ERROR, FATAL, NO, YES, a_document, a_side
from tests.results.workload import a_record, an_issue
from tests.results.written import write_run

HOSTILE = "</failure>]]><x a='\"'>&\x00\x1b[2J\ud800\ufffe\u202e🦀 | `@all`"
GATES = [
    GateResult(Gate("--fail-under a=1", "r", "a", 1.0), False, 0.5, "a is 0.5, 0.5 below 1"),
    GateResult(Gate("--require-official", "r", None), True, None, "3 of 3"),
]


def parsed(parts: Iterable[str]) -> ElementTree.Element:
    """Parse a document, and hold it against the schemas of Ant and Jenkins."""
    root = ElementTree.fromstring("".join(parts).encode())
    assert (root.tag, root.attrib) == ("testsuites", {})
    for number, suite in enumerate(root):
        _check_suite(suite, number)
    return root


def _check_suite(suite: ElementTree.Element, number: int) -> None:
    assert suite.tag == "testsuite"
    assert set(suite.attrib) == {
        "id", "name", "package", "timestamp", "hostname", "tests", "failures", "errors",
        "skipped", "time",
    }  # fmt: skip
    assert suite.get("id") == str(number)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    tags = [child.tag for child in suite]
    cases = suite.findall("testcase")
    assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
    assert all(set(each.attrib) == {"name", "value"} for each in suite.findall("properties/*"))
    for case in cases:
        assert set(case.attrib) == {"name", "classname", "time"}
        assert case.attrib["name"]
        assert re.fullmatch(r"\d+\.\d{3}", case.attrib["time"])
        assert [child.tag for child in case] in ([], ["failure"], ["error"], ["skipped"])
        for child in case:
            wanted = {"message"} if child.tag == "skipped" else {"message", "type"}
            assert set(child.attrib) == wanted
    counts = {tag: len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "error", "skipped")}
    assert suite.attrib["tests"] == str(len(cases))
    assert [suite.attrib[name] for name in ("failures", "errors", "skipped")] == [
        str(counts[tag]) for tag in ("failure", "error", "skipped")
    ]


def verdicts(suite: ElementTree.Element) -> dict[str, str]:
    return {
        case.attrib["name"]: next((child.tag for child in case), "passed")
        for case in suite.findall("testcase")
    }


def test_a_task_is_a_test(tmp_path: Path) -> None:
    root = a_side(
        tmp_path, "a",
        {
            "right": [YES, YES], "once": [NO, YES], "wrong": [NO, NO], "short": [ERROR, NO],
            "broke": [YES, FATAL], "skipped": ["cancelled", "skipped_budget"],
        },
        tasks=9, document=a_document(k=2),
    )  # fmt: skip
    (suite, gates) = parsed(launch_junit([("toy", root)], GATES))
    assert verdicts(suite) == {
        "right": "passed", "once": "passed", "wrong": "failure", "short": "failure",
        "broke": "error", "skipped": "skipped", "3 more tasks": "skipped",
    }  # fmt: skip
    assert {each.attrib["name"]: each.attrib["value"] for each in suite[0]} == {
        "run_id": "a", "metric": "accuracy", "planned_tasks": "9", "planned_attempts": "18",
    }  # fmt: skip
    assert verdicts(gates) == {"--fail-under a=1 r": "failure", "--require-official r": "passed"}
    message = suite.find("testcase[@name='broke']/error").attrib["message"]  # type: ignore[union-attr]
    assert message == "attempt 2: FATAL scorer_crashed (run): because"
    short = suite.find("testcase[@name='short']/failure")
    assert short is not None
    assert short.attrib["type"] == "failed_error"


def test_hostile_texts_are_text(tmp_path: Path) -> None:
    record = a_record(
        f"task {HOSTILE}".encode("utf-8", "replace").decode(),
        outcome=Outcome.FAILED_ERROR,
        metrics={},
        answer=HOSTILE.encode("utf-8", "replace").decode() * 1000,
        details={"why": "<script>\x07" * 10_000, "list": ["]]>"] * 10_000},
        issues=(an_issue(IssueCode.AGENT_FAILED, "</error>\x1b\n&amp;" * 1000),),
        timing=Timing(),
    )
    root = write_run(tmp_path, [record], k=1).root
    (suite,) = parsed(launch_junit([("<r>&\"'", root)]))
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert "<script>" in failure.text
    assert "</failure>" in failure.text
    assert len(failure.text) <= MAX_TEXT_CHARS
    assert len(failure.attrib["message"]) <= 300
    assert suite.attrib["name"] == "<r>&\"'"


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_can_be_an_attribute_and_content(text: str) -> None:
    document = f'<x a="{_attribute(text, 50)}">{_content(text)}</x>'
    found = ElementTree.fromstring(document.encode())
    assert len(found.attrib["a"]) <= 50


def test_all_texts_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.results.junit.MAX_ALL_TEXT_CHARS", 5_000)
    figures = {f"t{number}": [NO] for number in range(20)}
    root = a_side(tmp_path, "a", figures, answer="x" * 10_000)
    (suite,) = parsed(launch_junit([("toy", root)]))
    texts = [each.text or "" for each in suite.iter("failure")]
    assert len(texts) == 20
    assert 4_000 < sum(map(len, texts)) <= 5_000


def test_a_run_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (suite,) = parsed(launch_junit([("gone", tmp_path / "gone")]))
    assert verdicts(suite) == {"run": "error"}


def test_a_comparison_fails_where_a_task_got_worse(tmp_path: Path) -> None:
    first = a_side(tmp_path, "a", {"x": [YES], "y": [NO], "z": [YES], "only": [YES]})
    second = a_side(tmp_path, "b", {"x": [NO], "y": [YES], "z": [FATAL]})
    found = compare_runs([first, second])
    suite, _gates = parsed(comparison_junit(found, GATES))
    assert verdicts(suite) == {"x": "failure", "y": "passed", "z": "skipped", "only": "skipped"}
