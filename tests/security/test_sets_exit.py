"""What an eval set writes and what its commands show: a secret planted in it comes out of none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from steelyard.cli.deployment import deployment
from steelyard.cli.evalset import COMMANDS as EVALSET
from tests.evalset.projects import write_pack
from tests.security.echoing import echoing
from tests.security.planted import SECRETS, found_below, found_in
from tests.security.test_canary import PLUGINS, orchestration, run

pytestmark = pytest.mark.integration

SHOWS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "submit": (("set.yaml", "--dry-run"), ("set.yaml", "--dry-run", "--json")),
    "resume": (("latest",), ("latest", "--json")),
    "retry": (("latest", "--progress", "none", "--json"),),
    "list": ((), ("--json",)),
    "status": (("latest",), ("latest", "--json")),
    "watch": (("latest",), ("latest", "--json")),
    "logs": (("latest",), ("latest", "--json")),
    "scan": (("latest", "--scanner", "tool-misuse"), ("latest", "--json")),
    "findings": (("latest",), ("latest", "--json")),
    "report": tuple(
        ("latest", "--format", form)
        for form in ("table", "json", "csv", "markdown", "junit", "html")
    ),
    "compare": (
        ("latest", "other"), ("latest", "other", "--json"), ("latest", "other", "--markdown", "m"),
    ),
    "export": tuple(("latest", "--format", form) for form in ("csv", "jsonl")),
    "sql": (("latest", "select * from rows"),),
    "expand": (("set.yaml",), ("set.yaml", "--json")),
}  # fmt: skip
ELSEWHERE: Final = {
    "init": "reads no settings",
    "cancel": "says a set's id: tests/cli/test_evalset_submit.py",
}
OF_DEPLOYMENTS: Final = (
    ("list",), ("list", "--json"), ("show", "leaky"), ("show", "leaky", "--json"),
    ("check", "leaky"), ("check", "leaky", "--json"),
)  # fmt: skip


@dataclass(frozen=True)
class LeakySet:
    folder: Path
    said: str
    """What `submit` said on both streams."""


@pytest.fixture(scope="module", params=["log", "raise"])
def leaky(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LeakySet:
    folder = tmp_path_factory.mktemp("leaky")
    with echoing() as port:
        write_set(folder, port, request.param)
        ended = run(folder, "evalset", "submit", "set.yaml", "--progress", "plain",
                    "--config", "deployments.json")  # fmt: skip
    return LeakySet(folder, ended.stdout + ended.stderr)


def write_set(folder: Path, port: int, mode: str) -> None:
    (request,) = orchestration(port, mode)["requests"]
    parts = {part: request[part] for part in ("harness", "model", "environment")}
    write_pack(folder / "p", cases=2)
    (folder / "deployments.json").write_text(
        json.dumps({"deployments": [{"name": "leaky", **parts}]})
    )
    manifest: dict[str, Any] = {
        "schema": "evalset/v1",
        "name": "leaks",
        "packs": ["./p"],
        "agents": [{"deployment": "leaky"}],
        "runtime": {"secret_env": ["LISTED"]},
        "execution": {"analysis": request["execution"]["analysis"]},
        "scanners": ["reward-hacking", "tool-misuse", f"{PLUGINS}:Seeing"],
    }
    (folder / "set.yaml").write_text(json.dumps(manifest))


def test_every_command_has_a_row() -> None:
    assert set(EVALSET) - set(SHOWS) - set(ELSEWHERE) == set()
    assert set(deployment.commands) - {row[0] for row in OF_DEPLOYMENTS} == set()


def test_no_file_of_a_set_holds_a_secret(leaky: LeakySet) -> None:
    (root,) = (leaky.folder / "results" / "leaks").iterdir()
    names = {path.name for path in root.rglob("*") if path.is_file()}
    assert {"evalset.json", "0001.json", "findings.jsonl", "attempts.jsonl"} <= names, leaky.said
    assert found_below(leaky.folder / "results") == []


def test_submit_says_no_secret(leaky: LeakySet) -> None:
    assert leaky.said
    assert found_in(leaky.said) == []


@pytest.mark.parametrize(
    "line", [f"{name} {' '.join(row)}" for name, rows in SHOWS.items() for row in rows]
)
def test_no_command_on_a_set_shows_a_secret(leaky: LeakySet, line: str, tmp_path: Path) -> None:
    name, row = next(
        (name, row)
        for name, rows in SHOWS.items()
        for row in rows
        if f"{name} {' '.join(row)}" == line
    )
    copy = shutil.copytree(leaky.folder, tmp_path / "copy")
    (root,) = (copy / "results" / "leaks").iterdir()
    if "other" in row:
        twin = shutil.copytree(root, root.with_name("20260101_000000"))
        row = tuple(str(twin) if word == "other" else word for word in row)
    more = ("--config", "deployments.json") if name in ("submit", "resume", "retry", "scan") else ()
    with echoing() as port:  # what goes on with the set calls its model again
        if name in ("submit", "resume", "retry"):
            write_set(copy, port, "raise")
        ended = run(copy, "evalset", name, *row, *more)
    assert "Traceback" not in ended.stderr
    assert ended.stdout or ended.stderr
    assert found_in(ended.stdout + ended.stderr) == []
    if "m" in row:
        assert found_in((copy / "m").read_bytes()) == []
    assert found_below(copy / "results") == []


@pytest.mark.parametrize("row", OF_DEPLOYMENTS, ids=" ".join)
def test_no_command_on_deployments_shows_a_secret(row: tuple[str, ...], tmp_path: Path) -> None:
    with echoing() as port:
        write_set(tmp_path, port, "raise")
        (tmp_path / "results").mkdir()
        ended = run(tmp_path, "deployment", *row, "--config", "deployments.json")
    assert "Traceback" not in ended.stderr
    assert ended.stdout or ended.stderr
    assert found_in(ended.stdout + ended.stderr) == []


def test_the_secrets_were_there_to_be_found(leaky: LeakySet) -> None:
    written = (leaky.folder / "deployments.json").read_bytes()
    assert len(found_in(written)) >= 5
    assert found_in(json.dumps(SECRETS)) != []
