"""What is wrong in an orchestration or an option: exit 2, the place, the remedy, nothing made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.bad_input.command import HEAD, PACK, assert_refused, steelyard, write_pack

pytestmark = pytest.mark.integration

FILES: dict[str, tuple[str, Sequence[str]]] = {
    "unknown benchmark": (
        "  - {name: a, benchmark: {id: humanevl}}\n",
        ["o.yaml:6:31 requests[0].benchmark.id", "unknown benchmark 'humanevl'", "humaneval?"],
    ),
    "unknown harness": (
        "  - {name: a, harness: {id: oracl}}\n",
        ["o.yaml:6:29 requests[0].harness.id", "unknown harness 'oracl'", "mean oracle?"],
    ),
    "unknown environment": (
        "  - {name: a, environment: {id: sandbx}}\n",
        ["o.yaml:6:33 requests[0].environment.id", "unknown environment", "mean sandbox?"],
    ),
    "unknown field": (
        "  - {name: a, executionn: {}}\n",
        ["o.yaml:6:15 requests[0].executionn", "unknown field", "did you mean execution?"],
    ),
    "unknown field of a harness": (
        "  - {name: a, harness: {id: chat, tmperature: 1}, model: {id: m}}\n",
        ["o.yaml:6:35 requests[0].harness.tmperature", "unknown field", "none are allowed"],
    ),
    "an agent's version that is no version": (
        "  - {name: a, harness: {id: codex, version: latest}, model: {id: m}}\n",
        ["o.yaml:6:45 requests[0].harness.version", "no exact version", "write one as 1.2.3"],
    ),
    "turns of an agent without such a bound": (
        "  - {name: a, harness: {id: codex, max_turns: 3}, model: {id: m}}\n",
        ["o.yaml:6:47 requests[0].harness.max_turns", "no bound on turns", "timeout_seconds"],
    ),
    "misspelt field of an agent": (
        "  - {name: a, harness: {id: claude_code, max_turn: 3}, model: {id: m}}\n",
        ["o.yaml:6:42 requests[0].harness.max_turn", "unknown field", "max_turns?"],
    ),
    "unknown field of a benchmark": (
        "  - {name: a, benchmark: {id: ./p, zork: 1}}\n",
        ["o.yaml:6:36 requests[0].benchmark.zork", "unknown field 'zork'", "allowed: path"],
    ),
    "unknown field of an environment": (
        "  - {name: a, environment: {id: host_process, nope: 1}}\n",
        ["o.yaml:6:47 requests[0].environment.nope", "unknown field 'nope'"],
    ),
    "wrong type": (
        "  - {name: a, execution: {limit: five}}\n",
        ["o.yaml:6:34 requests[0].execution.limit", "found the text 'five'", "a whole number"],
    ),
    "duplicate name": (
        "  - {name: a}\n  - {name: a}\n",
        ["o.yaml:7:12 requests[1].name", "'a' is used twice (first on line 6)", "name"],
    ),
    "duplicate key": (
        "  - {name: a, name: b}\n",
        ["o.yaml:6:15 requests[0].name", "written twice", "keep one"],
    ),
    "clash after normalisation": (
        "  - {name: a b}\n  - {name: a/b}\n",
        ["o.yaml:7:12 requests[1].name", "the same result folder", "punctuation"],
    ),
    "clash by case": (
        "  - {name: a}\n  - {name: A}\n",
        ["o.yaml:7:12 requests[1].name", "the same result folder", "case"],
    ),
    "params wrapper": (
        "  - {name: a, harness: {id: oracle, params: {max_turns: 3}}}\n",
        ["o.yaml:6:37 requests[0].harness.params", "no params wrapper", "max_turns beside id"],
    ),
    "k of zero": (
        "  - {name: a, execution: {attempts: {k: 0}}}\n",
        ["o.yaml:6:41 requests[0].execution.attempts.k", "found 0", "above 0"],
    ),
    "a key variable that is not set": (
        "  - {name: a, harness: {id: chat}, model: {id: m, api_key: '${STEELYARD_T_UNSET}'}}\n",
        ["o.yaml:6:60 requests[0].model.api_key", "${STEELYARD_T_UNSET} is not set", "export"],
    ),
    "a model variable that is empty": (
        "  - {name: a, harness: {id: chat}, model: {id: '${STEELYARD_T_EMPTY}'}}\n",
        ["o.yaml:6:48 requests[0].model.id", "${STEELYARD_T_EMPTY} is empty", "with a value"],
    ),
    "a URL variable that is empty": (
        "  - {name: a, harness: {id: chat}, model: {id: m, base_url: '${STEELYARD_T_EMPTY}'}}\n",
        ["o.yaml:6:61 requests[0].model.base_url", "is empty", "with a value"],
    ),
    "a reference inside of other text": (
        "  - {name: a, harness: {id: chat}, model: {id: m, base_url: 'http://${HOME}/v1'}}\n",
        ["o.yaml:6:61 requests[0].model.base_url", "stands inside other text", "whole field"],
    ),
    "a URL that is none": (
        "  - {name: a, harness: {id: chat}, model: {id: m, base_url: 'ftp://h/v1'}}\n",
        ["o.yaml:6:61 requests[0].model.base_url", "not an http or https URL", "https://host/v1"],
    ),
    "a header that HTTP does not allow": (
        '  - {name: a, harness: {id: chat}, model: {id: m, extra_headers: {x: "a\\nb"}}}\n',
        ["o.yaml:6:43 requests[0].model", "the header 'x'", "extra_headers"],
    ),
    "a parameter that would replace the harness's": (
        "  - {name: a, harness: {id: chat}, model: {id: m, params: {messages: []}}}\n",
        ["requests[0].model.params.messages: messages", "would replace", "leave it out"],
    ),
    "no such pack": (
        "  - {name: a, benchmark: {id: ./nowhere}}\n",
        ["o.yaml:6:31 requests[0].benchmark.id", "there is no pack at", "pack init"],
    ),
    "a model for a harness that calls none": (
        "  - {name: a, model: {id: m}}\n",
        ["o.yaml:6:27 requests[0].model.id", "calls no model", "{id: none}"],
    ),
    "no model for a harness that calls one": (
        "  - {name: a, harness: {id: chat}}\n",
        ["o.yaml:4:15", "the harness chat calls a model", "name one"],
    ),
    "a run to reuse that is not there": (
        "  - {name: a, runtime: {reuse_run_id: gone}}\n",
        ["o.yaml:6:39 requests[0].runtime.reuse_run_id", "no such run", "name another run"],
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_what_is_wrong_in_a_file_is_refused(project: Path, case: str) -> None:
    text, said = FILES[case]
    (project / "o.yaml").write_text(HEAD + text)
    assert_refused(project, "launch", "o.yaml", said=said, env={"STEELYARD_T_EMPTY": ""})


def test_problems_of_several_requests_come_at_once_in_order(project: Path) -> None:
    """One pass for all that can be judged: a second run must not find what the first hid."""
    write_pack(project / "bad", PACK.replace("version: 1", "version: one"))
    (project / "o.yaml").write_text(
        HEAD
        + "  - name: a\n"
        + "    harness: {id: chat, tmperature: 1}\n"
        + "    model: {id: m, base_url: 'ftp://h', params: {stream: true}}\n"
        + "    environment: {id: host_process, nope: 1}\n"
        + "  - name: b\n"
        + "    benchmark: {id: ./bad}\n"
        + "    environment: {id: host_process, nope: 1}\n"
        + "  - name: c\n"
        + "    benchmark: {id: ./p, zork: 1}\n"
        + "    model: {id: m}\n"
    )
    ran = steelyard(project, "launch", "o.yaml", "--json", status=2)
    fields = [problem["field"] for problem in ran.json["error"]["problems"]]
    assert sorted(fields) == [
        "requests[0].environment.nope",
        "requests[0].harness.tmperature",
        "requests[0].model.base_url",
        "requests[0].model.params.stream",
        "requests[1].environment.nope",
        "requests[2].benchmark.zork",
        "requests[2].model.id",
        "version",
    ]
    owners = [field.partition(".")[0] for field in fields if field.startswith("requests")]
    assert owners == sorted(owners)
    assert_refused(project, "launch", "o.yaml", said=["8 problems; nothing was created"])


def test_what_settings_show_and_what_planning_finds_is_one_list(project: Path) -> None:
    (project / "o.yaml").write_text(
        HEAD
        + "  - name: a\n"
        + "    benchmark: {id: ./pkk}\n"
        + "    execution: {attempts: {k: 0}}\n"
        + "  - name: b\n"
        + "    benchmark: {id: humaneval, bogus: 1}\n"
        + "    harness: {id: oracle, bogus2: 1}\n"
        + "    environment: {id: sandbox, bogus3: 1}\n"
        + "    model: {id: x}\n"
    )
    said = [
        "o.yaml:7:21 requests[0].benchmark.id: there is no pack at ./pkk",
        "o.yaml:8:31 requests[0].execution.attempts.k: found 0",
        "o.yaml:10:32 requests[1].benchmark.bogus: unknown field",
        "o.yaml:11:27 requests[1].harness.bogus2: unknown field",
        "o.yaml:12:32 requests[1].environment.bogus3: unknown field",
        "o.yaml:13:17 requests[1].model.id: the harness oracle calls no model",
        "6 problems; nothing was created",
    ]
    assert_refused(project, "launch", "o.yaml", said=said)


def test_options_of_a_run_are_judged_by_the_plan_too(project: Path) -> None:
    assert_refused(
        project, "run", "./p", "oracle", "x", "--k", "0", "-P", "harness.zork=1",
        said=["--k: found 0", "MODEL: the harness oracle calls no model", "unknown field 'zork'",
              "3 problems"],
    )  # fmt: skip


RUN = ("run", "./p", "oracle", "none")
OPTIONS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "unknown harness": (
        ("run", "./p", "oracl", "none"), ["HARNESS: unknown harness 'oracl'", "mean oracle?"],
    ),
    "unknown environment": ((*RUN, "--env", "sandbx"), ["--env: unknown env", "sandbox?"]),
    "no such pack": (
        ("run", "./nowhere", "oracle", "none"), ["BENCHMARK: there is no pack", "pack init"],
    ),
    "k of zero": ((*RUN, "--k", "0"), ["--k: found 0", "a number above 0"]),
    "k that is no number": ((*RUN, "--k", "x"), ["--k: found the text 'x'", "whole number"]),
    "malformed JSON": (
        (*RUN, "--benchmark-params", '{"a": 1,}'),
        ["--benchmark-params:1:9", "not well-formed JSON"],
    ),
    "JSON that is no object": (
        (*RUN, "--harness-params", "[1]"), ["--harness-params:1:1", "expected a JSON object"],
    ),
    "a key twice in JSON": (
        (*RUN, "--benchmark-params", '{"a": 1, "a": 2}'),
        ["--benchmark-params:1:10 benchmark.a", "written twice", "keep one"],
    ),
    "params wrapper in JSON": (
        (*RUN, "--harness-params", '{"params": {"a": 1}}'),
        ["--harness-params:1:2 harness.params", "no params wrapper", "beside id"],
    ),
    "unknown field": (
        ("run", "./p", "chat", "m", "-P", "harness.tmperature=1"),
        ["-P harness.tmperature", "unknown field 'tmperature'", "take it out"],
    ),
    "unset variable": (
        ("run", "./p", "chat", "m", "--model-api-key", "${STEELYARD_T_UNSET}"),
        ["--model-api-key: ${STEELYARD_T_UNSET} is not set", "export STEELYARD_T_UNSET"],
    ),
    "k on launch": (("launch", "o.yaml", "--k", "3"), ["--k: launch has no --k", "attempts.k"]),
    "strategy on launch": (
        ("launch", "o.yaml", "--attempt-strategy", "pass"),
        ["--attempt-strategy: launch has no", "execution.attempts.strategy"],
    ),
    "no such orchestration": (("launch", "none.yaml"), ["none.yaml: there is no such file"]),
}  # fmt: skip


@pytest.mark.parametrize("case", OPTIONS)
def test_what_is_wrong_in_an_option_is_refused(project: Path, case: str) -> None:
    arguments, said = OPTIONS[case]
    assert_refused(project, *arguments, said=said)


def test_pass_on_a_scalar_metric_is_refused(project: Path) -> None:
    pack = project / "p" / "pack.yaml"
    pack.write_text(pack.read_text().replace("  threshold: 1.0\n", ""))
    assert_refused(
        project, *RUN, "--k", "2", "--attempt-strategy", "pass",
        said=["--attempt-strategy: ", "'score' is scalar", "strategy: avg"],
    )  # fmt: skip


def test_a_used_run_id_is_refused_and_the_run_left_as_it_is(project: Path) -> None:
    steelyard(project, *RUN, "--run-id", "baseline", status=0)
    records = project / "results" / "none_p_oracle" / "baseline" / "attempts.jsonl"
    before = records.read_bytes()
    assert_refused(
        project, *RUN, "--run-id", "baseline", said=["--run-id: the run id", "is in use", "another"]
    )
    assert records.read_bytes() == before


def test_an_empty_key_is_a_warning_since_keyless_servers_exist(project: Path) -> None:
    ran = steelyard(
        project, "run", "./p", "chat", "m", "--model-api-key", "${STEELYARD_T_EMPTY}",
        "--dry-run", env={"STEELYARD_T_EMPTY": ""}, status=0,
    )  # fmt: skip
    assert "warning: --model-api-key" in ran.err
    assert "STEELYARD_T_EMPTY" in ran.err


def test_a_models_settings_given_by_p_do_not_go_to_the_endpoint(project: Path) -> None:
    ran = steelyard(
        project, "run", "./p", "chat", "m", "-P", "model.max_connections=3",
        "-P", "model.top_k=5", "--dry-run", "--json", status=0,
    )  # fmt: skip
    (request,) = ran.json["orchestration"]["requests"]
    assert request["model"]["max_connections"] == 3
    assert request["model"]["params"] == {"top_k": 5}
