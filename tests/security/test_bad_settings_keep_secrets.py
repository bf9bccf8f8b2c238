"""What is wrong with settings is said without the secrets that stand in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.__main__ import main
from steelyard.config.resolve import resolve_orchestration
from steelyard.engine.launch import prepare
from steelyard.engine.spec import ExecutionSpec
from steelyard.engine.spec_json import spec_to_bytes
from tests.security.planted import SECRETS, found_in
from tests.security.test_canary import PLUGINS, orchestration

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789-canary"
PIECE = 8
"""A message that is cut may hold half a key: no piece of this length may show."""

YAML = {
    "unclosed": f"requests:\n- name: r\n  model: {{id: m, api_key: '{KEY}",
    "colon in the value": f"requests:\n- name: r\n  model:\n    api_key: {KEY}: x\n",
    "a tab": f"requests:\n- name: r\n  model:\n\tapi_key: {KEY}\n",
    "an unknown tag": f"requests:\n- name: r\n  model: {{api_key: !!python/x '{KEY}'}}\n",
    "an anchor": f"requests:\n- name: r\n  model: {{api_key: *{KEY}}}\n",
    "twice": f"requests:\n- name: r\n  model: {{api_key: {KEY}, api_key: {KEY}}}\n",
    "a list": f"requests:\n- name: r\n  model: {{id: m, api_key: [{KEY}]}}\n",
    "a mapping": f"requests:\n- name: r\n  model: {{id: m, api_key: {{x: {KEY}}}}}\n",
    "headers as text": f"requests:\n- name: r\n  model: {{id: m, extra_headers: {KEY}}}\n",
    "in the wrong place": f"api_key: {KEY}\nrequests:\n- name: r\n  api_key: {KEY}\n",
    "in a section of the runtime": f"runtime: {{api_key: {KEY}}}\nrequests: []\n",
    "partly a reference": f"requests:\n- name: r\n  model: {{id: m, api_key: 'x${{HOME}}{KEY}'}}\n",
    "copied into a choice": (
        f"requests:\n- name: r\n  model: {{id: m, api_key: {KEY}, api_protocol: {KEY}}}\n"
        f"  benchmark: {KEY}\n  execution: {{attempts: {{k: {KEY}}}, shard: {KEY}}}\n"
    ),
}


def hides(text: str) -> bool:
    return not any(KEY[at : at + PIECE] in text for at in range(8, len(KEY) - PIECE))


@pytest.fixture
def said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))

    def run(*arguments: str) -> tuple[int, str]:
        status = main(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return run


@pytest.mark.parametrize("text", YAML.values(), ids=YAML.keys())
@pytest.mark.parametrize("flag", ["--debug", "--json"])
def test_a_fault_in_a_file_does_not_quote_its_key(
    tmp_path: Path, said: Callable[..., tuple[int, str]], text: str, flag: str
) -> None:
    (tmp_path / "o.yaml").write_text(text)
    for command in (("launch", "o.yaml", "--dry-run", flag), ("config", "check", "o.yaml", flag)):
        status, output = said(*command)
        assert status == 2, output
        assert hides(output), output


@pytest.mark.parametrize(
    "options",
    [
        ("--model-params", f'{{"auth": {{"key": "{KEY}"'),
        ("--model-params", f'["{KEY}"]'),
        ("-P", f"model.api_key:{KEY}"),
        ("-P", f"model.api_key.deep={KEY}"),
        ("-P", f"harness.api_key={KEY}"),
        ("--harness-params", f'{{"password": "{KEY}", "deep": {{"token": ["{KEY}"]}}}}'),
        ("--model-base-url", f"http://user:{KEY}@"),
        ("--model-base-url", f"user:{KEY}@127.0.0.1/v1"),
        ("--model-base-url", f"ftp://user:{KEY}@127.0.0.1/v1"),
        ("--model-base-url", f"http://127.0.0.1:99999/v1?key={KEY}"),
        ("--model-base-url", f"http://user:{KEY}@[::1/v1"),
        ("--model-base-url", f"http://127.0.0.1/v1?key={KEY}\n"),
        ("--model-api-key", f"{KEY}\r\nx-evil: 1", "--model-base-url", "http://127.0.0.1:9/v1"),
        ("-P", f"model.extra_headers={json.dumps({'a b': KEY, 'c': KEY + chr(10)})}"),
    ],
    ids=str,
)
@pytest.mark.parametrize("flags", [("--dry-run", "--debug"), ("--json", "--debug")], ids=str)
def test_a_fault_in_an_option_does_not_quote_its_key(
    said: Callable[..., tuple[int, str]], options: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    status, output = said("run", "humaneval", "chat", "m", *options, *flags)
    assert status == 2, output
    shown = output.replace(options[1], "") if options[0] == "-P" else output
    assert hides(shown), output


def test_a_component_that_refuses_its_secret_does_not_quote_it(
    tmp_path: Path, said: Callable[..., tuple[int, str]]
) -> None:
    one = {
        "name": "r",
        "benchmark": {"id": f"{PLUGINS}:Tasks"},
        "harness": {"id": "nop", "password": KEY, "auth": {"x": KEY}},
        "model": {"id": "none"},
        "environment": {"id": "host_process", "token": KEY},
    }
    (tmp_path / "o.json").write_text(json.dumps({"requests": [one]}))
    for flags in (("--dry-run",), ("--debug",), ("--json",)):
        status, output = said("launch", "o.json", *flags)
        assert status == 2, output
        assert hides(output), output


def test_a_spec_that_travels_holds_references_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document: dict[str, Any] = orchestration(9)
    del document["requests"][0]["benchmark"]["copy"]  # not written as a secret: not known as one
    (tmp_path / "o.json").write_text(json.dumps(document))
    environ = {"VARIABLE_KEY": SECRETS["api_key_variable"], "LISTED": SECRETS["secret_env"]}
    prepared = prepare(resolve_orchestration(tmp_path / "o.json", environ=environ, cwd=tmp_path))
    (planned,) = prepared.plan.requests
    (task,) = planned.services.benchmark.load_tasks()
    spec = ExecutionSpec(planned.spec, task, 1, 1, "token", 1)
    assert found_in(spec_to_bytes(spec)) == []
    assert found_in(repr(spec)) == []
    assert found_in(repr(prepared.plan.requests[0].request)) == []


@pytest.mark.integration
@pytest.mark.parametrize("environment", ["sandbox", "host_process"])
def test_no_program_of_a_session_has_a_key_in_its_variables(
    tmp_path: Path, environment: str
) -> None:
    vandal = Path(__file__).with_name("vandal.py")
    # The driver's own variables are a process of the same user on the host: that is trust `host`.
    script = "env | grep -c canary; cat /proc/self/environ | grep -ac canary; ls /proc/self/fd"
    if environment == "sandbox":
        script += "; cat /proc/[0-9]*/environ | grep -ac canary"
    arguments = [
        *(sys.executable, "-m", "steelyard", "run", f"{PLUGINS}:Tasks", f"{vandal}:Vandal"),
        *("none", "--env", environment, "--json", "--harness-params"),
        json.dumps({"script": script, "answer": "said"}),
    ]
    ended = subprocess.run(
        arguments,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "SOME_KEY": "canary"},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    (lines,) = tmp_path.rglob("attempts.jsonl")
    answer = json.loads(lines.read_text().split("\t")[0])["answer"].split()
    counts, descriptors = answer[:2], answer[2:]
    assert counts == ["0", "0"]
    assert set(descriptors[:4]) <= {"0", "1", "2", "3"}
    if environment == "sandbox":
        assert answer[-1] == "0"
