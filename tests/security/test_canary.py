"""A secret planted at every entrance comes out of no exit, in no form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from steelyard.results.lines import decode
from tests.security.echoing import echoing
from tests.security.planted import SECRETS, found_below, found_in

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
PLUGINS = Path(__file__).with_name("leaking.py")


def orchestration(port: int, mode: str = "model") -> dict[str, Any]:
    """One request with a secret in every field that can hold one."""
    user, password = quote(SECRETS["url_user"], safe=""), quote(SECRETS["url_password"], safe="")
    query = quote(SECRETS["url_query"], safe="")
    return {
        "requests": [
            {
                "name": "leaks",
                "benchmark": {"id": f"{PLUGINS}:Tasks", "copy": SECRETS["param_key"]},
                "harness": {
                    "id": f"{PLUGINS}:Leaky",
                    "mode": mode,
                    "password": SECRETS["param_key"],
                    "deep": [{"access_token": SECRETS["param_nested"]}],
                    "pin_token": int(SECRETS["number"]),
                    "option_key": SECRETS["option_key"],
                },
                "execution": {
                    "analysis": [
                        "failures",
                        {
                            "id": f"{PLUGINS}:Telling",
                            "analyzer_key": SECRETS["analyzer_key"],
                            "mode": mode,
                            "judge": {"api_key": SECRETS["judge_key"]},
                        },
                    ]
                },
                "environment": {"id": "host_process"},
                "model": {
                    "id": "m",
                    "base_url": f"http://{user}:{password}@127.0.0.1:{port}/v1?code={query}",
                    "api_key": SECRETS["api_key"],
                    "extra_headers": {"x-more": SECRETS["header"], "x-env": "${VARIABLE_KEY}"},
                    "params": {"auth": {"plain": SECRETS["param_auth"]}, "temperature": 0},
                    "max_request_retries": 0,
                },
            }
        ],
        "runtime": {"results_dir": "results", "secret_env": ["LISTED"]},
    }


def run(folder: Path, *arguments: str, document: object = None) -> subprocess.CompletedProcess[str]:
    """Run the product in `folder`, the secrets of its environment and its settings layer set."""
    if document is not None:
        (folder / "o.json").write_text(json.dumps(document))
    layer = {"harness": {"layer_key": SECRETS["config_layer"]}}
    (folder / "steelyard.yaml").write_text(json.dumps(layer))
    variables = {
        "VARIABLE_KEY": SECRETS["api_key_variable"],
        "LISTED": SECRETS["secret_env"],
        "XDG_CONFIG_HOME": str(folder / "conf"),
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [sys.executable, "-m", "steelyard", *arguments],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def assert_clean(ended: subprocess.CompletedProcess[str], folder: Path) -> None:
    leaks = [f"stdout: {one}" for one in found_in(ended.stdout)]
    leaks += [f"stderr: {one}" for one in found_in(ended.stderr)]
    if (folder / "results").exists():
        leaks += found_below(folder / "results")
    if leaks:
        pytest.fail("\n".join(leaks), pytrace=False)


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Read every line of the run's journals; each must be whole."""
    found = []
    for path in sorted((folder / "results").rglob("*.jsonl")):
        for line in path.read_bytes().split(b"\n")[:-1]:
            decoded = decode(line)
            assert decoded is not None, line[:200]
            found.append(decoded)
    return found


@pytest.mark.parametrize("mode", ["model", "raise", "fault", "large", "surrogate", "log"])
def test_nothing_that_a_plug_in_or_an_endpoint_says_holds_a_secret(
    tmp_path: Path, mode: str
) -> None:
    with echoing() as port:
        ended = run(tmp_path, "launch", "o.json", document=orchestration(port, mode))
    assert (tmp_path / "results").exists(), ended.stderr
    assert_clean(ended, tmp_path)
    outcomes = [line["outcome"] for line in lines_of(tmp_path) if "metrics" in line]
    wanted = "failed_fatal" if mode in ("raise", "fault") else "scored"
    assert outcomes == [wanted]
    (trajectory,) = tmp_path.rglob("trajectory.json")
    assert "[redacted]" in json.dumps(json.loads(trajectory.read_bytes()))


@pytest.mark.parametrize(
    ("status", "form"), [(400, "message"), (401, "first"), (401, "headers"), (500, "message")]
)
def test_an_error_that_quotes_the_key_is_shown_without_it(
    tmp_path: Path, status: int, form: str
) -> None:
    with echoing(status, form) as port:
        document = orchestration(port)
        arguments = ("--json",) if form == "headers" else ("--debug",)
        ended = run(tmp_path, "launch", "o.json", *arguments, document=document)
    assert str(status) in "".join(
        path.read_text() for path in (tmp_path / "results").rglob("*.jsonl")
    )
    assert_clean(ended, tmp_path)
    assert lines_of(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ("launch", "o.json", "--dry-run"),
        ("launch", "o.json", "--dry-run", "--json"),
        ("config", "show", "o.json"),
        ("config", "show", "o.json", "--json"),
        ("config", "check", "o.json"),
    ],
    ids=" ".join,
)
def test_what_shows_settings_shows_no_secret(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = run(tmp_path, *arguments, document=orchestration(9))
    assert ended.returncode == 0, ended.stderr
    assert_clean(ended, tmp_path)
