"""Bad settings: exit 2, the place, the remedy; all of them at once, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.components.known import REGISTRY
from steelyard.config.errors import BadInput, Problem
from steelyard.config.resolve import resolve_config, resolve_orchestration

HEAD = """\
defaults:
  model: {id: m}
  benchmark: {id: humaneval}
  harness: {id: chat}
"""
ONE = HEAD + "requests:\n  - name: a\n"


def refused(tmp_path: Path, text: str, suffix: str = "yaml") -> list[Problem]:
    file = tmp_path / f"o.{suffix}"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        resolve_orchestration(Path(file.name), environ={}, cwd=tmp_path, components=REGISTRY)
    assert caught.value.exit_status == 2
    return list(caught.value.problems)


CASES = {
    "unknown benchmark": (
        ONE + "    benchmark: {id: humanevl}\n",
        "o.yaml:7:21 requests[0].benchmark.id", "unknown benchmark 'humanevl'",
        "did you mean humaneval?",
    ),
    "unknown harness": (
        ONE + "    harness: {id: chatt}\n",
        "o.yaml:7:19 requests[0].harness.id", "unknown harness 'chatt'", "did you mean chat?",
    ),
    "unknown environment": (
        ONE + "    environment: {id: sandbx}\n",
        "o.yaml:7:23 requests[0].environment.id", "unknown environment", "did you mean sandbox?",
    ),
    "unknown field": (
        ONE + "    executionn: {limit: 1}\n",
        "o.yaml:7:5 requests[0].executionn", "unknown field 'executionn'",
        "did you mean execution?",
    ),
    "wrong type": (
        ONE + "    execution: {limit: five}\n",
        "o.yaml:7:24 requests[0].execution.limit", "found the text 'five'",
        "expected a whole number",
    ),
    "quoted number": (
        ONE + "    execution: {limit: '5'}\n",
        "o.yaml:7:24 requests[0].execution.limit", "found the text '5'", "a whole number",
    ),
    "true is no number": (
        ONE + "    execution: {limit: true}\n",
        "o.yaml:7:24 requests[0].execution.limit", "found true", "a whole number",
    ),
    "component as text": (
        ONE + "    harness: chat\n",
        "o.yaml:7:14 requests[0].harness", "found the text 'chat'", "write harness: {id: …}",
    ),
    "params wrapper": (
        ONE + "    harness: {id: chat, params: {max_turns: 3}}\n",
        "o.yaml:7:25 requests[0].harness.params", "no params wrapper",
        "write max_turns beside id, directly under harness",
    ),
    "k of zero": (
        ONE + "    execution: {attempts: {k: 0}}\n",
        "o.yaml:7:31 requests[0].execution.attempts.k", "found 0", "above 0",
    ),
    "k in the wrong place": (
        ONE + "    execution: {k: 3}\n",
        "o.yaml:7:17 requests[0].execution.k", "does not belong here", "under execution.attempts",
    ),
    "unknown strategy": (
        ONE + "    execution: {attempts: {strategy: best}}\n",
        "o.yaml:7:38 requests[0].execution.attempts.strategy", "found the text 'best'",
        "one of: avg, pass",
    ),
    "concurrency of one request": (
        ONE + "    execution: {task_concurrency: 4}\n",
        "o.yaml:7:17 requests[0].execution.task_concurrency", "does not belong here",
        "top level of the orchestration",
    ),
    "shared runtime in a request": (
        ONE + "    runtime: {provider_limits: {sandbox: 1}}\n",
        "o.yaml:7:15 requests[0].runtime.provider_limits", "does not belong here",
        "under runtime at the top level",
    ),
    "reuse at the top": (
        ONE + "runtime: {reuse: true}\n",
        "o.yaml:7:11 runtime.reuse", "does not belong here", "defaults.runtime",
    ),
    "model at the top": (
        ONE + "model: {id: m}\n",
        "o.yaml:7:1 model", "does not belong here", "under defaults",
    ),
    "temperature beside the model": (
        ONE + "    model: {temperature: 1}\n",
        "o.yaml:7:13 requests[0].model.temperature", "does not belong here", "model.params",
    ),
    "duplicate name": (
        ONE + "  - name: a\n",
        "o.yaml:7:11 requests[1].name", "the name 'a' is used twice (first on line 6)", "name",
    ),
    "clash after normalisation": (
        ONE.replace("name: a", "name: a b") + "  - name: a/b\n",
        "o.yaml:7:11 requests[1].name", "name the same result folder", "punctuation",
    ),
    "clash by case": (
        ONE + "  - name: A\n",
        "o.yaml:7:11 requests[1].name", "name the same result folder", "case",
    ),
    "clash despite other run ids": (
        ONE + "    output: {run_id: r1}\n  - name: A\n    output: {run_id: r2}\n",
        "o.yaml:8:11 requests[1].name", "name the same result folder", "case",
    ),
    "clash of a group and a request": (
        ONE + "  - name: b\n    output: {run_name: a}\n",
        "o.yaml:7:11 requests[1].name", "is also the group", "name",
    ),
    "empty name": (
        HEAD + "requests:\n  - name: ''\n",
        "o.yaml:6:11 requests[0].name", "found the text ''", "not empty",
    ),
    "name without a letter": (
        HEAD + "requests:\n  - name: '///'\n",
        "o.yaml:6:11 requests[0].name", "cannot name a folder", "another name",
    ),
    "device name": (
        HEAD + "requests:\n  - name: NUL\n",
        "o.yaml:6:11 requests[0].name", "device on Windows", "another name",
    ),
    "missing name": (
        HEAD + "requests:\n  - execution: {limit: 1}\n",
        "o.yaml:6:5 requests[0].name", "required field name is missing", "add name",
    ),
    "no requests": (
        HEAD + "requests: []\n", "o.yaml:5:11 requests", "found a list", "at least 1",
    ),
    "run id with a slash": (
        ONE + "    output: {run_id: ../x}\n",
        "o.yaml:7:22 requests[0].output.run_id", "cannot name a folder", "letters",
    ),
    "run name with a slash": (
        ONE + "    output: {run_name: a/b}\n",
        "o.yaml:7:24 requests[0].output.run_name", "cannot name a folder", "a-b",
    ),
    "shard beyond n": (
        ONE + "    execution: {shard: 3/2}\n",
        "o.yaml:7:24 requests[0].execution.shard", "no part 3 of 2", "1 <= i <= n",
    ),
    "shard of another form": (
        ONE + "    execution: {shard: 0/2}\n",
        "o.yaml:7:24 requests[0].execution.shard", "found the text '0/2'", "of the form",
    ),
    "unknown recipe": (
        ONE + "    execution: {recipes: [fit]}\n",
        "o.yaml:7:27 requests[0].execution.recipes[0]", "unknown recipe 'fit'", "no recipes",
    ),
    "pattern that does not compile": (
        ONE + "    execution: {retry_pattern_list: ['ok', '(']}\n",
        "o.yaml:7:44 requests[0].execution.retry_pattern_list[1]", "not a regular expression",
        "re.escape",
    ),
    "retries below 0": (
        ONE + "    execution: {max_retries: -1}\n",
        "o.yaml:7:30 requests[0].execution.max_retries", "-1", "0",
    ),
    "more retries than help": (
        ONE + "    execution: {max_retries: 1000000000}\n",
        "o.yaml:7:30 requests[0].execution.max_retries", "1000000000", "100",
    ),
    "retry patterns that are none": (
        ONE + "    execution: {max_retries: 1, retry_pattern_list: [ok, 3]}\n",
        "o.yaml:7:58 requests[0].execution.retry_pattern_list[1]", "found 3", "text",
    ),
    "saved artifacts": (
        ONE + "    execution: {save_artifacts: [{path: a}]}\n",
        "o.yaml:7:35 requests[0].execution.save_artifacts[0].path", "unknown field", "paths",
    ),
    "unknown analyzer": (
        ONE + "    execution: {analysis: [failure]}\n",
        "o.yaml:7:28 requests[0].execution.analysis[0]", "unknown analyzer 'failure'",
        "did you mean failures?",
    ),
    "unknown analyzer with parameters": (
        ONE + "    execution: {analysis: [{id: failure, examples: 1}]}\n",
        "o.yaml:7:33 requests[0].execution.analysis[0].id", "unknown analyzer 'failure'",
        "did you mean failures?",
    ),
    "unknown provider": (
        ONE + "runtime: {provider_limits: {sandbx: 1}}\n",
        "o.yaml:7:29 runtime.provider_limits.sandbx", "unknown environment 'sandbx'",
        "did you mean sandbox?",
    ),
    "negative limit": (
        ONE + "runtime: {provider_limits: {sandbox: -1}}\n",
        "o.yaml:7:38 runtime.provider_limits.sandbox", "found -1", "at least 0",
    ),
    "endless timeout": (
        ONE + "runtime: {timeout_seconds: .inf}\n",
        "o.yaml:7:28 runtime.timeout_seconds", "found inf", "finite",
    ),
    "future version": (
        "version: 2\n" + ONE, "o.yaml:1:10 version", "found 2", "one of: 1",
    ),
    "empty section": (
        ONE + "    execution:\n",
        "o.yaml:7:5 requests[0].execution", "found nothing (null)", "a mapping",
    ),
    "duplicate key": (
        ONE + "    name: b\n", "o.yaml:7:5 requests[0].name", "written twice", "keep one",
    ),
    "a list": ("- a\n", "o.yaml:1:1", "must be a mapping", "field: value"),
    "an empty file": ("", "o.yaml:1:1", "must be a mapping", "field: value"),
    "broken YAML": ("a: [\n", "o.yaml:2:1", "not well-formed YAML", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_bad_setting_is_refused_with_place_and_remedy(tmp_path: Path, case: str) -> None:
    text, where, message, remedy = CASES[case]
    (problem,) = refused(tmp_path, text)
    assert str(problem.where) == where
    assert message in problem.message
    assert remedy in (problem.remedy or "")


def test_all_problems_come_at_once_in_the_order_of_their_places(tmp_path: Path) -> None:
    text = (
        "version: 9\ndefaults:\n  model: {id: '${UNSET}'}\nrequests:\n"
        "  - name: a\n    benchmark: {id: nope}\n    harness: {id: chat}\n"
        "  - name: A\n    benchmark: {id: humaneval}\n    harness: {}\n    execution: {limit: x}\n"
    )
    lines = [problem.where.line for problem in refused(tmp_path, text)]
    assert lines == [1, 3, 6, 8, 10, 11]


def test_json_orchestrations_have_places_too(tmp_path: Path) -> None:
    text = '{"requests": [\n  {"name": "a",\n   "executionn": {}}]}'
    problems = refused(tmp_path, text, "json")
    assert "o.json:3:4 requests[0].executionn" in [str(problem.where) for problem in problems]


def test_a_configuration_file_with_an_orchestrations_fields_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "steelyard.yaml").write_text("requests: []\ntask_concurrency: 3\n")
    with pytest.raises(BadInput) as caught:
        resolve_config(environ={}, cwd=tmp_path)
    first, second = caught.value.problems
    assert str(first.where) == "steelyard.yaml:1:1 requests"
    assert "steelyard launch" in (first.remedy or "")
    assert (str(second.where), second.remedy) == (
        "steelyard.yaml:2:1 task_concurrency",
        "write it under execution",
    )


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="none\\.yaml: there is no such file"):
        resolve_orchestration(Path("none.yaml"), environ={}, cwd=tmp_path)


def test_no_message_holds_a_secret(tmp_path: Path) -> None:
    text = ONE + "    model: {api_key: [sk-12345678], apikey: sk-12345678, params: sk-12345678}\n"
    # `params` is no secret by its name, and text of the wrong type is shown.
    shown = "\n".join(map(str, refused(tmp_path, text.replace("params: sk-12345678", "rpm: x"))))
    assert "sk-12345678" not in shown
