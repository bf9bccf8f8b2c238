"""Who judges, and where: what a pack may say, what a request must, what is the same judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.__main__ import main
from steelyard.benchmarks.pack.judging.settings import (
    JudgeParams,
    JudgeSpec,
    is_own_loopback,
    judge_identity,
    judge_of,
)
from steelyard.config.errors import BadInput
from steelyard.testing.endpoint import MockEndpoint
from tests.benchmarks.judging import judged_pack
from tests.benchmarks.scoring import problems_of, write_pack

ASSERTION = "type: judge, assertion: a"
LOOPBACK = "http://127.0.0.1:9/v1"
FUNCTIONS = Path(__file__).parents[1] / "engine" / "judge_functions.py"


def spec(**model: Any) -> JudgeSpec:
    return JudgeSpec.model_validate({"model": model})


def params(**model: Any) -> JudgeParams:
    return JudgeParams.model_validate({"model": model})


def refusal(pack: JudgeSpec | None, request: JudgeParams | None) -> str:
    with pytest.raises(BadInput) as caught:
        judge_of(pack, request)
    return str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/v1", "http://127.9.9.9:80", "https://[::1]:8000/v1", "http://localhost:1"],
)
def test_loopback_addresses_are_this_machines_own(url: str) -> None:
    assert is_own_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/v1",
        "http://10.0.0.1",
        "http://169.254.169.254/latest",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://user@127.0.0.1",
        "http://127.0.0.1@example.com",
        "http://127.0.0.1/x?y=",
        "http://127.0.0.1/x#",
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "http://0.0.0.0",
        "http://[::1",
        "http://127.0.0.1:99999",
        "127.0.0.1",
        "",
    ],
)
def test_nothing_else_is(url: str) -> None:
    assert not is_own_loopback(url)


def test_a_packs_loopback_judge_needs_no_confirmation() -> None:
    judge = judge_of(spec(id="j", base_url=LOOPBACK), None)
    assert (judge.model["id"], judge.model["base_url"]) == ("j", LOOPBACK)
    assert judge.samples == 1


def test_a_request_lies_over_the_pack() -> None:
    pack = JudgeSpec.model_validate(
        {"model": {"id": "j", "params": {"a": {"b": 1, "c": 2}, "l": [1, 2]}}, "samples": 3}
    )
    request = params(base_url=LOOPBACK, params={"a": {"c": 3}, "l": [4]}, rpm=5)
    judge = judge_of(pack, request)
    assert judge.model["params"] == {"a": {"b": 1, "c": 3}, "l": [4]}
    assert (judge.model["id"], judge.model["rpm"], judge.samples) == ("j", 5, 3)
    assert judge_of(pack, request.model_copy(update={"samples": 5})).samples == 5


def test_no_key_goes_where_only_the_pack_says() -> None:
    pack = spec(id="j", base_url=LOOPBACK)
    assert "key would go to http://127.0.0.1:9/v1" in refusal(pack, params(api_key="k"))
    assert "key would go" in refusal(pack, params(extra_headers={"x": "y"}))
    assert judge_of(pack, params(api_key="k", base_url=LOOPBACK)).model["api_key"] == "k"


def test_a_key_without_an_address_goes_to_the_protocols_own() -> None:
    assert "base_url" not in judge_of(spec(id="j"), params(api_key="k")).model


def test_an_address_is_shown_without_what_may_be_secret_in_it() -> None:
    said = refusal(spec(id="j", base_url="https://user:pw@h.example/v1?key=abc"), None)
    assert "https://h.example/v1?…" in said
    assert "pw" not in said
    assert "abc" not in said


def test_key_and_headers_are_not_shown_by_the_parameters() -> None:
    assert "s3cret" not in repr(params(api_key="s3cret", extra_headers={"x": "s3cret"}))


def test_what_is_judged_is_model_parameters_and_samples_not_the_way_there() -> None:
    pack = spec(id="j", base_url=LOOPBACK)
    same = judge_identity(pack, None)
    elsewhere = {"base_url": "http://h", "api_key": {"$secret": "env:K"}, "rpm": 3, "id": None}
    assert judge_identity(pack, {"model": elsewhere, "samples": None}) == same
    for changed in (
        {"model": {"id": "k"}},
        {"model": {"params": {"temperature": 0}}},
        {"model": {"api_protocol": "anthropic"}},
        {"samples": 3},
    ):
        assert judge_identity(pack, changed) != same
    assert judge_identity(pack, {"model": {"api_protocol": "openai-chat"}}) == same


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("{model: {id: j, api_key: abc}}", "a pack holds no api key"),
        ("{model: {id: j, extra_headers: {a: b}}}", "a pack holds no extra headers"),
        ("{model: {id: '${JUDGE}'}}", "is not looked up for a pack"),
        ("{model: {id: j, params: {a: ['${KEY}']}}}", "is not looked up for a pack"),
        ("{model: {id: j, bass_url: x}}", "bass_url"),
        ("{model: {id: j}, samples: 2}", "15"),
        ("{model: {id: j}, samples: 0}", "samples"),
        ("{model: {id: j, api_protocol: soap}}", "api_protocol"),
        ("{modell: {id: j}}", "modell"),
        ("judge", "judge"),
    ],
)
def test_what_a_pack_may_not_say_of_its_judge_is_named(
    tmp_path: Path, judge: str, said: str
) -> None:
    more = f"prompt: a\njudge: {judge}"
    problems = problems_of(write_pack(tmp_path, f"[{{{ASSERTION}}}]", more=more))
    assert any(said in problem and "pack.yaml:5:" in problem for problem in problems), problems
    assert "abc" not in "".join(problems)


def test_a_packs_judge_is_said_once_with_its_remedy(tmp_path: Path) -> None:
    more = "prompt: a\njudge: {model: {id: j, api_key: abc}}"
    (problem,) = problems_of(write_pack(tmp_path, f"[{{{ASSERTION}}}]", more=more))
    assert "benchmark: {judge: {model: {api_key: …}}}" in problem


def test_a_pack_that_names_no_judge_can_be_loaded(tmp_path: Path) -> None:
    benchmark = judged_pack(tmp_path, ASSERTION, "prompt: a")
    assert benchmark.info().metrics
    assert len(benchmark.load_tasks()) == 1
    with pytest.raises(BadInput):
        benchmark.scoring_models()


# -- `pack check` ------------------------------------------------------------------------------


def check(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any, str]:
    status = main(["pack", "check", *map(str, arguments), "--json"])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if captured.out else None, captured.err


def checked_pack(tmp_path: Path, answer: str = "right") -> Path:
    more = f"prompt: a\nreference: {answer}"
    return write_pack(tmp_path, f"[{{{ASSERTION}, show: []}}]", more=more)


def test_a_check_asks_no_judge_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said, _ = check(capsys, checked_pack(tmp_path))
    assert status == 0
    assert said["judges_not_asked"] == ["judge"]
    (case,) = said["cases"]
    assert (case["oracle"], case["nop"]) == (1, 0)
    assert main(["pack", "check", str(tmp_path)]) == 0
    assert "not asked, and counted as passed: judge" in capsys.readouterr().err


@pytest.mark.integration
def test_a_check_asks_the_judge_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-judge-0123456789abcdef"
    monkeypatch.setenv("JUDGE_KEY", key)
    with MockEndpoint("--function", f"{FUNCTIONS}:judge", "--require-key", key) as endpoint:
        model = {"id": "j", "base_url": endpoint.url, "api_key": "${JUDGE_KEY}"}
        judge = json.dumps({"model": model})
        status, said, _ = check(capsys, checked_pack(tmp_path / "good"), "--judge", judge)
        assert (status, said["judges_not_asked"]) == (0, [])
        status, said, _ = check(capsys, checked_pack(tmp_path / "bad", "no"), "--judge", judge)
    assert status == 1
    (finding,) = said["cases"][0]["findings"]
    assert "oracle scores 0" in finding
    assert "It lacks the word. [redacted]" in finding
    assert key not in json.dumps(said)


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        ("{", "--judge"),
        ("[]", "--judge is a JSON object"),
        ("{}", "no model is named to judge"),
        ('{"model": {"id": "${NO_SUCH_VARIABLE}"}}', "NO_SUCH_VARIABLE"),
        ('{"model": {"idd": "j"}}', "idd"),
        ('{"samples": 2}', "15"),
    ],
)
def test_a_judge_that_cannot_be_asked_is_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], judge: str, words: str
) -> None:
    status = main(["pack", "check", str(checked_pack(tmp_path)), "--judge", judge])
    assert status == 2
    assert words in capsys.readouterr().err


@pytest.mark.integration
def test_a_judge_that_does_not_answer_is_no_fault_of_the_cases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = {"id": "j", "base_url": "http://127.0.0.1:9/v1", "max_request_retries": 0}
    judge = json.dumps({"model": model})
    status, said, _ = check(capsys, checked_pack(tmp_path), "--judge", judge)
    assert status == 1
    assert not said["passed"]
    assert [case["findings"] for case in said["cases"]] == [[] for _ in said["cases"]]
    assert "the judge j could not be asked" in said["cases"][0]["judge_fault"]
    assert main(["pack", "check", str(tmp_path), "--judge", judge]) == 1
    out = capsys.readouterr().out
    assert "not judged: the judge j could not be asked" in out
    assert "need mending" not in out
    assert "nothing to mend" not in out


def test_who_judges_can_be_said_in_a_file_and_on_the_command_line() -> None:
    for pack in (None, spec(base_url="http://x.example")):
        with pytest.raises(BadInput) as caught:
            judge_of(pack, None)
        for problem in caught.value.problems:
            assert "under the request's benchmark" in (problem.remedy or "")
            assert "-P benchmark.judge.model." in (problem.remedy or "")
