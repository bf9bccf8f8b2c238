"""`command`: real programs, in both environments, against the mock endpoint through the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.issues import IssueCode, Outcome
from steelyard.components.registry import BUILTINS, Kind
from steelyard.engine.spec_json import result_to_bytes
from steelyard.testing.endpoint import MockEndpoint
from tests.engine.fakes import Watch
from tests.harnesses.asking import AGENT, PLACES, last_step, model_settings, run_command

pytestmark = pytest.mark.integration

ENVIRONMENTS = sorted(BUILTINS[Kind.ENVIRONMENT])
SHOW_PROMPT = {
    "stdin": {"run": ["cat"]},
    "argument": {"run": ["printf", "%s", "{prompt}"]},
    "file": {"run": ["cat", "{prompt_file}"]},
    "environment": {"script": 'printf %s "$STEELYARD_PROMPT"'},
}
HOSTILE = "a {token} {url} {{prompt}} $HOME `id` $(id) 'x' \" 🦀 \u2028 --help\nand more"
PRICES = {"m": {"input_per_mtok": 1e6, "output_per_mtok": 1e6}}
"""A dollar a token."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[MockEndpoint]:
    with MockEndpoint("--text", "42") as served:
        yield served


@pytest.fixture(autouse=True)
def _engine(request: pytest.FixtureRequest) -> None:
    """Where a case runs in containers, name this test run's engine and image."""
    case = getattr(request.node, "callspec", None)
    if case is not None and case.params.get("environment") == "docker":
        host, image = (request.getfixturevalue(name) for name in ("docker_host", "debian_image"))
        PLACES["docker"] = {"host": host, "image": image}


def codes(result: Any) -> list[IssueCode]:
    return [issue.code for issue in result.issues]


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("words", [[], ["--stream"], ["--style", "anthropic"]], ids=str)
def test_a_program_reaches_its_model_and_every_call_is_a_step(
    environment: str, words: list[str], endpoint: MockEndpoint
) -> None:
    watch = Watch()
    result = run_command(
        {"run": ["python3", "-c", AGENT, "--calls", "2", *words]},
        environment=environment,
        model=model_settings(endpoint.url),
        right="42",
        watch=watch,
    )
    assert result.outcome is Outcome.SCORED, result.issues
    assert result.metrics == {"passed": True}
    assert result.usage.requests == result.model_calls_succeeded == 2
    assert [step.source for step in result.steps] == ["user", "agent", "user", "agent", "system"]
    assert tuple(watch.steps) == result.steps
    assert last_step(result)["stderr"] == "call 0: 42\ncall 1: 42\n"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("way", SHOW_PROMPT)
def test_the_prompt_arrives_as_it_is(way: str, environment: str) -> None:
    harness = {**SHOW_PROMPT[way], "prompt": way, "answer": {"trim": False}}
    result = run_command(harness, environment=environment, prompt=HOSTILE)
    assert result.answer == HOSTILE, result.issues
    assert result.outcome is Outcome.SCORED
    assert result.usage.requests == 0


@pytest.mark.parametrize("way", ["stdin", "file"])
def test_a_prompt_of_a_megabyte_arrives_on_standard_input_and_in_a_file(way: str) -> None:
    text = "🦀 long " * 120_000
    result = run_command(
        {**SHOW_PROMPT[way], "prompt": way, "answer": {"trim": False}},
        environment="sandbox",
        prompt=text,
    )
    assert result.answer == text


@pytest.mark.parametrize("way", ["argument", "environment"])
@pytest.mark.parametrize(("text", "why"), [("x" * 200_000, "200000 bytes"), ("a\0b", "NUL")])
def test_a_prompt_that_no_word_can_hold_is_said_with_the_remedy(
    way: str, text: str, why: str
) -> None:
    result = run_command({**SHOW_PROMPT[way], "prompt": way}, prompt=text)
    assert codes(result) == [IssueCode.CONFIGURATION]
    assert why in result.issues[0].message
    assert "prompt: stdin" in result.issues[0].message
    assert result.request_fault is None  # other tasks may be shorter


def test_system_messages_stand_before_the_prompt_or_apart() -> None:
    one = run_command({"run": ["cat"]}, system="be brief", prompt="hi")
    assert one.answer == "be brief\n\nhi"
    apart = run_command(
        {"script": 'cat; echo; cat "$STEELYARD_SYSTEM_FILE"', "system": "separate"},
        system="be brief",
        prompt="hi",
    )
    assert apart.answer == "hi\nbe brief"
    word = run_command(
        {"run": ["echo", "{system}", "{{system}}"], "system": "separate"}, system="be {prompt}"
    )
    assert word.answer == "be {prompt} {system}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({}, "out"),
        ({"stream": "stderr"}, "err"),
        ({"file": "made.txt"}, "made"),
        ({"file": "{home}/kept.txt"}, "kept"),
        ({"file": "absent.txt"}, None),
        ({"file": "/proc/../proc/self/../../no/such"}, None),
        ({"command": ["sh", "-c", "printf %s {prompt}; cat made.txt"]}, "hellomade"),
        ({"command": ["false"]}, None),
        ({"extract": "o(.)t"}, "u"),
        ({"extract": "[a-z]"}, "t"),
        ({"extract": "nothing like it"}, None),
        ({"trim": False}, " out\n"),
    ],
)
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_answer_comes_from_where_it_is_asked(
    answer: dict[str, Any], expected: str | None, environment: str
) -> None:
    script = 'echo " out"; echo err >&2; echo made >made.txt; echo kept >"$HOME/kept.txt"'
    result = run_command({"script": script, "answer": answer}, environment=environment)
    assert result.answer == expected, result.issues
    assert result.outcome is Outcome.SCORED


@pytest.mark.parametrize("environment", ["host_process", "sandbox"])
def test_a_file_of_this_machine_is_no_answer(environment: str) -> None:
    """In a container the same path is the image's own file, and harms nobody."""
    result = run_command(
        {"script": "echo out", "answer": {"file": "../../etc/hostname"}}, environment=environment
    )
    assert result.answer is None


def test_a_pattern_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steelyard.harnesses.command.extracting.CPU_S", 1)
    script = "head -c 40 /dev/zero | tr '\\0' a"
    result = run_command({"script": script, "answer": {"extract": "(a+)+b"}})
    assert codes(result) == [IssueCode.CONFIGURATION]
    assert "nested repetition" in result.issues[0].message


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_home_and_prompt_are_no_part_of_what_is_measured(environment: str) -> None:
    result = run_command(
        {"script": 'mkdir -p "$HOME/.cache"; echo x >"$HOME/.cache/f"; echo y >kept.txt'},
        environment=environment,
        collects=True,
    )
    assert result.details["names"] == ["kept.txt"], result.issues


def test_a_program_that_gives_up_fell_short_and_its_answer_is_kept() -> None:
    result = run_command({"script": "echo half; echo 'no luck' >&2; exit 3"})
    assert result.outcome is Outcome.FAILED_ERROR
    assert codes(result) == [IssueCode.AGENT_FAILED]
    assert "exit code 3: no luck" in result.issues[0].message
    assert result.answer == "half"
    allowed = run_command({"script": "echo half; exit 3", "allow_exit_codes": [0, 3]})
    assert allowed.outcome is Outcome.SCORED
    killed = run_command({"script": "kill -9 $$"})
    assert "signal 9" in killed.issues[0].message


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_program_that_is_not_there_stops_the_request_and_is_named(environment: str) -> None:
    result = run_command({"run": ["no-such-agent", "-x"]}, environment=environment)
    assert codes(result) == [IssueCode.CONFIGURATION]
    assert "no-such-agent" in (result.request_fault or "")


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_time_limit_of_its_own_keeps_what_was_printed(environment: str) -> None:
    result = run_command(
        {"script": "echo begun; sleep 60", "timeout_seconds": 0.5}, environment=environment
    )
    assert result.outcome is Outcome.TIMED_OUT
    assert codes(result) == [IssueCode.AGENT_TIMED_OUT]
    assert result.answer == "begun"
    assert last_step(result)["stdout"] == "begun\n"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_when_the_agents_time_ends_what_it_has_printed_is_its_answer(environment: str) -> None:
    ended = run_command(
        {"script": "echo begun; echo oh >&2; sleep 60"}, environment=environment, run_seconds=1.5
    )
    assert (ended.outcome, codes(ended)) == (Outcome.TIMED_OUT, [IssueCode.AGENT_TIMED_OUT])
    assert ended.answer == "begun"
    assert (last_step(ended)["stdout"], last_step(ended)["stderr"]) == ("begun\n", "oh\n")


@pytest.mark.parametrize(
    "harness",
    [
        {"script": "echo 42; sleep 60"},
        {"script": "echo 42 >out.txt; sleep 60", "answer": {"file": "out.txt"}},
        {"script": "echo 42; sleep 60", "timeout_seconds": 0.5},
    ],
)
def test_what_a_timed_out_program_had_done_is_scored_where_the_benchmark_says_so(
    harness: dict[str, Any],
) -> None:
    result = run_command(harness, run_seconds=1.5, right="42", scores_timed_out=True)
    assert (result.outcome, result.metrics) == (Outcome.SCORED, {"passed": True}), result.issues
    assert codes(result) == [IssueCode.AGENT_TIMED_OUT]


def test_a_program_that_waits_for_its_model_spends_no_time_of_its_own() -> None:
    """429 with `Retry-After: 2` twice: more seconds of waiting than the program has."""
    with MockEndpoint("--text", "42", "--fault", "429:first=2,retry_after=2") as busy:
        result = run_command(
            {"run": ["python3", "-c", AGENT], "timeout_seconds": 3.9},
            model=model_settings(busy.url),
            right="42",
        )
    assert result.outcome is Outcome.SCORED, result.issues
    assert result.times.waited_s > 3.9


def test_the_agents_time_ends_it_and_its_steps_are_kept(endpoint: MockEndpoint) -> None:
    result = run_command(
        {"script": f"python3 - <<'AGENT'\n{AGENT}\nAGENT\nsleep 60"},
        model=model_settings(endpoint.url),
        run_seconds=4,
    )
    assert result.outcome is Outcome.TIMED_OUT, result.issues
    assert result.usage.requests == 1
    assert [step.source for step in result.steps] == ["user", "agent", "system"]


def test_output_without_end_is_capped_and_said() -> None:
    result = run_command({"script": "yes | head -c 3000000", "max_output_bytes": 1000})
    assert result.answer is not None
    assert len(result.answer) < 1001
    assert codes(result) == [IssueCode.OUTPUT_TRUNCATED]
    assert result.outcome is Outcome.SCORED


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_its_own_logs_stand_in_the_trajectory_within_bounds(environment: str) -> None:
    result = run_command(
        {
            "script": "mkdir logs; echo one >logs/a.log; echo two >logs/b.log; "
            'seq 100000 >"$HOME/long.jsonl"; ln -s /etc/passwd logs/c.log',
            "log": ["logs/*.log", "{home}/long.jsonl", "absent.log"],
        },
        environment=environment,
    )
    logs = last_step(result)["logs"]
    assert logs["logs/a.log"] == "one\n"
    assert logs["logs/b.log"] == "two\n"
    of_this_machine = Path("/etc/passwd").read_text()  # an image has one of its own
    assert logs.get("logs/c.log", "") != of_this_machine
    assert environment == "docker" or "root:" not in logs.get("logs/c.log", "")
    assert "not read" in logs["absent.log"]
    long = next(text for path, text in logs.items() if path.endswith("long.jsonl"))
    assert len(long) < 130 * 1024
    assert long.startswith("[")
    assert long.endswith("100000\n")


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_files_of_this_machine_are_brought_in_beside_what_is_measured(
    environment: str, tmp_path: Path
) -> None:
    (tmp_path / "agent.sh").write_text("echo from $(basename $0): $(cat $(dirname $0)/lib/x)\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/x").write_text("y")
    result = run_command(
        {
            "files": [str(tmp_path / "agent.sh"), str(tmp_path / "lib")],
            "run": ["sh", "{files}/agent.sh"],
        },
        environment=environment,
        collects=True,
    )
    assert result.answer == "from agent.sh: y", result.issues
    assert result.details["names"] == []


def test_variables_and_setup_are_laid_over_and_setup_is_not_the_agents_time() -> None:
    result = run_command(
        {
            "setup": [["sh", "-c", "sleep 0.4; mkdir sub; echo {workdir} >sub/where"]],
            "run": ["sh", "-c", "cat sub/where; echo $MINE $HOME"],
            "env": {"MINE": "{prompt}!", "HOME": "/elsewhere"},
        },
        prompt="hey",
        environment="sandbox",
    )
    assert result.answer == "/workspace\nhey! /elsewhere", result.issues
    assert result.times.waited_s >= 0.4  # of wall time, however busy the machine is
    failing = run_command({"setup": [["sh", "-c", "echo no >&2; exit 9"]], "run": ["true"]})
    assert codes(failing) == [IssueCode.CONFIGURATION]
    assert "exit code 9: no" in failing.issues[0].message


def test_it_starts_in_the_folder_that_is_asked() -> None:
    result = run_command({"run": ["pwd"], "cwd": "/tmp"}, environment="sandbox")
    assert result.answer == "/tmp"
    nowhere = run_command({"run": ["pwd"], "cwd": "absent"}, environment="sandbox")
    assert codes(nowhere) == [IssueCode.CONFIGURATION]


def test_what_needs_a_model_is_refused_without_one() -> None:
    result = run_command({"run": ["echo", "{model}"]})
    assert codes(result) == [IssueCode.CONFIGURATION]
    assert "{model}" in (result.request_fault or "")


def test_the_fields_of_the_model_are_filled_in(endpoint: MockEndpoint) -> None:
    result = run_command(
        {"run": ["echo", "{model}", "{url}", '{"a": {"b": 1}}']},
        model=model_settings(endpoint.url),
        environment="sandbox",
    )
    assert result.answer == 'm http://127.0.0.1:8377 {"a": {"b": 1}}'


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_a_token_that_the_agent_tells_is_nowhere_in_the_result(
    environment: str, endpoint: MockEndpoint
) -> None:
    watch = Watch()
    script = f"python3 - --show-token <<'AGENT'\n{AGENT}\nAGENT\nenv | tee out.txt; env >&2; exit 7"
    for exits in ([7], [0]):  # the last words of a failure are quoted in its issue
        result = run_command(
            {"script": script, "allow_exit_codes": exits, "log": "out.txt"},
            environment=environment,
            model=model_settings(endpoint.url),
            watch=watch,
            collects=True,
        )
        data = result_to_bytes(result)
        assert b"OPENAI_API_KEY" in data
        assert b"sk-steelyard-" not in data, data
        assert b"[redacted]" in data
    told = json.dumps([step.as_json() for step in watch.steps])
    assert "OPENAI_API_KEY" in told
    assert "sk-steelyard-" not in told


def test_a_spent_allowance_ends_the_program(endpoint: MockEndpoint) -> None:
    loop = f"python3 - --calls 500 <<'AGENT'\n{AGENT}\nAGENT\nsleep 60"
    for bounds in (
        {"attempt_tokens": 15},
        {"attempt_usd": 15.0, "prices": PRICES},
    ):
        result = run_command({"script": loop}, model=model_settings(endpoint.url), bounds=bounds)
        assert result.outcome is Outcome.FAILED_ERROR
        assert codes(result) == [IssueCode.ATTEMPT_BUDGET], result.issues
        assert result.request_fault is None
        # Over by the call that was under way, and by no more.
        assert 15 <= result.usage.input_tokens + result.usage.output_tokens <= 22
        assert last_step(result)["exit_code"] == -9  # what it had printed stands in its last step


def test_an_endpoint_that_rejects_stops_the_request() -> None:
    with MockEndpoint("--require-key", "the-right-key-0123") as served:
        result = run_command(
            {"run": ["python3", "-c", AGENT]}, model=model_settings(served.url), attempts=3
        )
    assert codes(result) == [IssueCode.MODEL_ENDPOINT_REJECTED]
    assert result.request_fault is not None
    assert result.outcome is Outcome.FAILED_FATAL


@pytest.mark.parametrize("tolerant", [True, False])
def test_an_endpoint_that_is_down_is_not_the_agents_fault(tolerant: bool) -> None:
    with MockEndpoint("--fault", "500:rate=1") as served:
        result = run_command(
            {"script": f"python3 - <<'AGENT'\n{AGENT}\nAGENT\n{'true' if tolerant else ''}"},
            model=model_settings(served.url, max_request_retries=0),
        )
    assert result.outcome is Outcome.FAILED_FATAL, result.issues
    assert codes(result) == [IssueCode.MODEL_UNAVAILABLE]


def test_what_is_cut_off_with_a_call_under_way_has_an_unknown_cost() -> None:
    with MockEndpoint("--text", "42", "--latency", "30") as served:
        result = run_command(
            {"run": ["python3", "-c", AGENT]},
            model=model_settings(served.url),
            bounds={"prices": PRICES},
            cancel_when="hello",
        )
    assert result.outcome is Outcome.CANCELLED
    assert result.usage.requests == 1
    assert result.usage.cost_usd is None


def test_many_programs_share_one_gateway(endpoint: MockEndpoint) -> None:
    result = run_command(
        {"run": ["python3", "-c", AGENT]},
        model=model_settings(endpoint.url),
        environment="sandbox",
        right="42",
        attempts=24,
    )
    assert result.outcome is Outcome.SCORED, result.issues
