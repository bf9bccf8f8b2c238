"""Options become settings: run's, launch's, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli import dry_run
from steelyard.cli.options import GROUPS, RUN_ONLY, SHARED
from steelyard.config.resolve import Resolution
from steelyard.config.schema.orchestration import Orchestration
from steelyard.config.schema.written import ConfigFile
from steelyard.config.secrets import SecretRef
from steelyard.config.validation import model_at

Run = Callable[..., Any]


@pytest.fixture
def resolved(steelyard: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Orchestration]:
    """Run a command up to the point where it would plan; give what it resolved."""

    def run(*arguments: str) -> Orchestration:
        found: list[Resolution] = []

        def finish(resolution: Resolution, **_: object) -> int:
            found.append(resolution)
            return 0

        monkeypatch.setattr(dry_run, "finish", finish)
        ran = steelyard(*arguments)
        assert ran.status == 0, ran.err
        return found[0].orchestration

    return run


RUN = ("run", "humaneval", "chat", "m")


@pytest.mark.parametrize(
    ("arguments", "path", "value"),
    [
        (["--k", "3"], "execution.attempts.k", 3),
        (["--attempt-strategy", "pass"], "execution.attempts.strategy", "pass"),
        (["--no-early-stop"], "execution.attempts.early_stop", False),
        (["--env", "host_process"], "environment.id", "host_process"),
        (["--environment", "sandbox"], "environment.id", "sandbox"),
        (["--benchmark-params", '{"a": [1]}'], "benchmark.params", {"a": [1]}),
        (["--harness-params", '{"a": 1}'], "harness.params", {"a": 1}),
        (["--env-params", '{"a": 1}'], "environment.params", {"a": 1}),
        (["--model-params", '{"top_p": 0.5}'], "model.params", {"top_p": 0.5}),
        (["--execution-params", '{"limit": 4}'], "execution.limit", 4),
        (["--model-base-url", "http://h:1/v1"], "model.base_url", "http://h:1/v1"),
        (["--model-api-key", "sk-12345678"], "model.api_key",
         SecretRef("config:option:model.api_key")),
        (["--model-api-key", "${KEY}"], "model.api_key", SecretRef("env:KEY")),
        (["--model-api-protocol", "anthropic"], "model.api_protocol", "anthropic"),
        (["-P", "benchmark.a=1"], "benchmark.params", {"a": 1}),
        (["-P", "benchmark.a=x=y"], "benchmark.params", {"a": "x=y"}),
        (["-P", 'harness.a={"b": 1}'], "harness.params", {"a": {"b": 1}}),
        (["-P", "env.a.b=true"], "environment.params", {"a": {"b": True}}),
        (["-P", "model.temperature=0.5"], "model.params", {"temperature": 0.5}),
        (["--model-params", '{"a": 1}', "-P", "model.b=2"], "model.params", {"a": 1, "b": 2}),
        (["--retry-pattern-list", '["a", "b"]'], "execution.retry_pattern_list", ["a", "b"]),
        (["--retry-pattern-list", "[Cc]onn"], "execution.retry_pattern_list", ["[Cc]onn"]),
        (["--retry-pattern-list", "null"], "execution.retry_pattern_list", []),
        (["--limit", "2"], "execution.limit", 2),
        (["--sample-ids", "a, b", "--sample-ids", '["c,d"]'], "execution.sample_ids",
         ["a", "b", "c,d"]),
        (["--exclude-ids", "a"], "execution.exclude_ids", ["a"]),
        (["--shard", "1/3"], "execution.shard", "1/3"),
        (["--run-id", "r1"], "output.run_id", "r1"),
        (["--run-name", "g"], "output.run_name", "g"),
        (["--reuse"], "runtime.reuse", True),
        (["--reuse", "20260806_120000"], "runtime.reuse_run_id", "20260806_120000"),
        (["--reuse=r1"], "runtime.reuse_run_id", "r1"),
        (["--reuse", "r1", "--k", "2"], "runtime.reuse_run_id", "r1"),
        (["--no-checkpoint-resume"], "runtime.checkpoint_resume", False),
        (["--max-retries", "0"], "execution.max_retries", 0),
    ],
)  # fmt: skip
def test_an_option_of_run_sets_its_field(
    resolved: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str], path: str, value: Any
) -> None:
    monkeypatch.setenv("KEY", "sk-87654321")
    found: Any = resolved(*RUN, *arguments).requests[0]
    for step in path.split("."):
        found = getattr(found, step)
    assert found == value


@pytest.mark.parametrize(
    ("arguments", "path", "value"),
    [
        (["--task-concurrency", "8"], "task_concurrency", 8),
        (["--timeout-seconds", "0"], "runtime.timeout_seconds", 0),
        (
            ["--provider-limit", "sandbox=8", "--provider-limit", "host_process=0"],
            "runtime.provider_limits",
            {"sandbox": 8, "host_process": 0},
        ),
        (["--env-open-qps", "sandbox=0.5"], "runtime.env_open_qps", {"sandbox": 0.5}),
        (["--results-dir", "out"], "runtime.results_dir", "out"),
        (["--data-dir", "d"], "runtime.data_dir", "d"),
        (["--progress", "plain"], "runtime.progress", "plain"),
        (["--log-level", "DEBUG"], "runtime.log_level", "DEBUG"),
        (["--file-log-level", "ERROR"], "runtime.file_log_level", "ERROR"),
        (["--cleanup-grace-seconds", "5"], "runtime.cleanup_grace_seconds", 5),
        (["--budget-usd", "1.5"], "budget.usd", 1.5),
        (["--budget-tokens", "1000"], "budget.tokens", 1000),
    ],
)
@pytest.mark.parametrize("command", ["run", "launch"])
def test_a_shared_option_sets_its_field(
    resolved: Any, project: Path, command: str, arguments: list[str], path: str, value: Any
) -> None:
    (project / "o.yaml").write_text(ORCHESTRATION)
    start = RUN if command == "run" else ("launch", "o.yaml")
    found: Any = resolved(*start, *arguments)
    for step in path.split("."):
        found = getattr(found, step)
    assert found == value


ORCHESTRATION = """
defaults: {model: {id: m}, benchmark: {id: humaneval}, harness: {id: chat}}
requests:
  - {name: a}
  - {name: b, runtime: {reuse: false}, execution: {limit: 9}, output: {run_id: x}}
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--reuse", "humaneval", "chat", "m"],
        ["humaneval", "--reuse", "chat", "m"],
        ["humaneval", "chat", "--reuse", "m"],
        ["--k", "2", "--reuse", "humaneval", "chat", "m"],
    ],
)
def test_reuse_before_a_positional_does_not_swallow_it(resolved: Any, arguments: list[str]) -> None:
    (request,) = resolved("run", *arguments).requests
    assert (request.benchmark.id, request.harness.id, request.model.id) == (
        "humaneval", "chat", "m",
    )  # fmt: skip
    assert request.runtime.reuse
    assert request.runtime.reuse_run_id is None


def test_reuse_before_all_positionals_takes_a_fourth_word(resolved: Any) -> None:
    (request,) = resolved("run", "--reuse", "r1", "humaneval", "chat", "m").requests
    assert (request.model.id, request.runtime.reuse_run_id) == ("m", "r1")


def test_reuse_on_launch_is_a_default_that_a_request_leaves(resolved: Any, project: Path) -> None:
    (project / "o.yaml").write_text(ORCHESTRATION)
    first, second = resolved("launch", "o.yaml", "--reuse").requests
    assert (first.runtime.reuse, second.runtime.reuse) == (True, False)


def test_options_of_launch_go_over_every_request(resolved: Any, project: Path) -> None:
    (project / "o.yaml").write_text(ORCHESTRATION)
    found = resolved("launch", "o.yaml", "--limit", "2", "--run-id", "r").requests
    assert [(one.execution.limit, one.output.run_id) for one in found] == [(2, "r")] * 2


@pytest.mark.parametrize(
    ("arguments", "place", "remedy"),
    [
        (["--k", "0"], "--k: found 0", "above 0"),
        (["--k", "x"], "--k: found the text 'x'", "a whole number"),
        (["--limit", "1.5"], "--limit: found 1.5", "a whole number"),
        (["--attempt-strategy", "best"], "--attempt-strategy: found the text", "avg, pass"),
        (["--progress", "fancy"], "--progress: found the text", "auto, plain, none"),
        (["--benchmark-params", "{a: 1}"], "--benchmark-params:1:2: not well-formed JSON",
         "double quotes"),
        (["--model-params", '{"a": 1, "a": 2}'], "--model-params:1:10", "written twice"),
        (["--env-params", "3"], "--env-params:1:1: expected a JSON object", "write --env-params"),
        (["--execution-params", '{"limitt": 1}'], "--execution-params:1:2 execution.limitt",
         "did you mean limit?"),
        (["--harness-params", '{"params": {"x": 1}}'], "--harness-params:1:2 harness.params",
         "beside id"),
        (["-P", "benchmark"], "-P benchmark: not of the form", "-P benchmark.key=value"),
        (["-P", "benchmrk.a=1"], "-P benchmrk.a: unknown section", "did you mean benchmark?"),
        (["-P", "benchmark.a={"], "-P benchmark.a:1:2", "double quotes"),
        (["--provider-limit", "sandbox"], "--provider-limit: found 'sandbox'", "PROVIDER=N"),
        (["--provider-limit", "sandbx=1"], "unknown environment 'sandbx'", "did you mean sandbox"),
        (["--sample-ids", "[1"], "--sample-ids:1:3", "expected `,`"),
        (["--model-base-url", "${UNSET_HERE}"], "--model-base-url: ${UNSET_HERE} is not set",
         "export UNSET_HERE"),
        (["--max-retries", "-2"], "--max-retries: ", "0"),
        (["--max-retries", "101"], "--max-retries: ", "100"),
        (["--run-id", "a/b"], "--run-id: the run_id 'a/b' cannot name a folder", "a-b"),
        (["--config", "none.yaml"], "none.yaml: there is no such file", "path"),
        (["--retry-pattern-list", "("], "--retry-pattern-list: not a regular expression", "re"),
    ],
)  # fmt: skip
def test_a_bad_option_is_refused_by_name(
    steelyard: Run, arguments: list[str], place: str, remedy: str
) -> None:
    ran = steelyard(*RUN, *arguments, "--dry-run")
    assert (ran.status, ran.out) == (2, "")
    assert place in ran.err
    assert remedy in ran.err
    assert "Traceback" not in ran.err


def test_all_bad_options_come_at_once(steelyard: Run) -> None:
    ran = steelyard("run", "humanevl", "chatt", "m", "--k", "0", "--limit", "x", "--dry-run")
    for said in ("humanevl", "chatt", "--k", "--limit", "4 problems"):
        assert said in ran.err


@pytest.mark.parametrize(("flag", "field"), [("--k", "k"), ("--attempt-strategy", "strategy")])
def test_launch_refuses_what_each_request_decides(steelyard: Run, flag: str, field: str) -> None:
    ran = steelyard("launch", "o.yaml", flag, "3")
    assert ran.status == 2
    assert f"launch has no {flag}" in ran.err
    assert f"write execution.attempts.{field} under the request" in ran.err


def test_every_option_names_a_setting_that_exists() -> None:
    for option in (*SHARED, *RUN_ONLY):
        holder = model_at(ConfigFile, option.path[:-1])
        assert holder is not None, option.flag
        assert option.path[-1] in holder.model_fields, option.flag


def test_help_lists_the_options_under_headings(steelyard: Run) -> None:
    lines = steelyard("run", "--help").out.splitlines()
    headings = [line[:-1] for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == list(GROUPS)
    section = {}
    for line in lines:
        if line.removesuffix(":") in GROUPS:
            heading = line.removesuffix(":")
        elif line.startswith("  -"):
            section[line.split()[0].rstrip(",")] = heading
    assert section["--k"] == "Request"
    assert section["--model-base-url"] == "Model"
    assert section["--task-concurrency"] == section["--budget-usd"] == "Scheduling"
    assert section["--reuse"] == section["--results-dir"] == "Results and reuse"
    assert section["--json"] == section["--progress"] == "Output"


@pytest.mark.parametrize("command", ["run", "launch"])
def test_help_lists_every_option_once(steelyard: Run, command: str) -> None:
    out = steelyard(command, "--help").out
    for option in (*(RUN_ONLY if command == "run" else ()), *SHARED):
        assert out.count(f"  {option.flag} ") + out.count(f"  {option.flag},") == 1, option.flag
