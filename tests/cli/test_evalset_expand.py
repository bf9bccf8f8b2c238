"""`evalset expand`, `init`, and `deployment`, `pack` for eval sets, on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.cli.evalset import COMMANDS

Run = Callable[..., Any]

SET = """\
schema: evalset/v1
name: n
packs: [p, "team/q"]
agents: [{deployment: a, label: one}, {deployment: b}]
models: [m]
repeats: 2
limits: {budget_usd: 3, max_concurrent_runs: 2}
"""


def test_cells_are_shown_in_their_order(steelyard: Run, project: Path) -> None:
    (project / "set.yaml").write_text(SET)
    ran = steelyard("evalset", "expand", "set.yaml")
    lines = ran.out.splitlines()
    assert ran.status == 0
    assert lines[0] == "n: 8 cells of 2 packs x 2 agents x 1 model x 2 repeats"
    assert lines[1].split() == ["#", "matrix", "key", "pack", "agent", "model", "repeat", "seed"]
    assert [line.split()[1] for line in lines[2:4]] == ["p/one/m/1", "p/one/m/2"]


def test_the_document_is_that_of_the_contract(steelyard: Run, project: Path) -> None:
    (project / "set.yaml").write_text(SET)
    document = steelyard("evalset", "expand", "set.yaml", "--json").json
    assert list(document) == [
        "schema", "name", "count", "pack_count", "agent_count", "model_count", "repeats",
        "case_fanout",
        "max_concurrent_runs", "budget_usd", "combinations",
    ]  # fmt: skip
    assert list(document["combinations"][0]) == [
        "matrix_key", "pack_ref", "agent_ref", "agent_label", "model_ref", "repeat", "seed",
        "case_fanout",
    ]  # fmt: skip
    assert (document["count"], document["budget_usd"]) == (8, 3)


def test_nothing_but_the_file_is_read(steelyard: Run, project: Path) -> None:
    (project / "set.yaml").write_text(SET)
    (project / "steelyard.yaml").write_text("deployments: [nonsense")
    assert steelyard("evalset", "expand", "set.yaml").status == 0


def test_errors_stand_on_standard_error_and_as_json(steelyard: Run, project: Path) -> None:
    (project / "set.yaml").write_text(SET.replace("repeats: 2", "repeats: 2.9\nnope: 1"))
    ran = steelyard("evalset", "expand", "set.yaml", "--json")
    assert ran.status == 2
    first, second = ran.json["errors"]
    assert {key: first[key] for key in ("path", "line", "column", "message")} == {
        "path": "repeats", "line": 6, "column": 10, "message": "found 2.9",
    }  # fmt: skip
    assert second["path"] == "nope"
    assert ran.err.count("error: ") == 2
    plain = steelyard("evalset", "expand", "set.yaml")
    assert (plain.status, plain.out) == (2, "")
    assert "set.yaml:6:10 repeats: found 2.9" in plain.err


@pytest.mark.parametrize(("cap", "status"), [("8", 0), ("7", 2), ("0", 2), ("2001", 2)])
def test_the_cap_can_be_lowered(steelyard: Run, project: Path, cap: str, status: int) -> None:
    (project / "set.yaml").write_text(SET)
    ran = steelyard("evalset", "expand", "set.yaml", "--max-combinations", cap, "--json")
    assert ran.status == status
    if cap == "7":
        message = ran.json["errors"][0]["message"]
        assert "8 combinations (2 packs x 2 agents x 1 models x 2 repeats)" in message


def test_the_group_names_its_commands_and_the_nearest(steelyard: Run) -> None:
    alone = steelyard("evalset")
    assert alone.status == 0
    assert all(f"  {name} " in alone.out for name in COMMANDS)
    assert "did you mean expand?" in steelyard("evalset", "expnd").err


def test_init_writes_what_runs_as_it_stands(steelyard: Run, project: Path) -> None:
    written = steelyard("evalset", "init", "--json").json
    assert written["files"] == ["steelyard.evalset.yaml", "steelyard.yaml"]
    again = steelyard("evalset", "init")
    assert again.status == 2
    assert "is there already" in again.err
    dry = steelyard("evalset", "submit", "steelyard.evalset.yaml", "--dry-run", "--json")
    assert (dry.status, dry.json["attempts"]) == (0, 4 * 47)
    assert not (project / "results").exists()


@pytest.mark.integration
def test_two_commands_give_a_newcomer_a_result(project: Path) -> None:
    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "steelyard", "evalset", *arguments],
            cwd=project, capture_output=True, text=True, timeout=120, check=False,
            env={**os.environ, "HOME": str(project)},
        )  # fmt: skip

    assert ran("init").returncode == 0
    done = ran("submit", "steelyard.evalset.yaml", "--yes")
    assert done.returncode == 0, done.stderr
    assert "first-sweep" in done.stdout
    assert "completed" in done.stdout


def test_a_project_that_is_there_is_told_what_to_add(steelyard: Run, project: Path) -> None:
    (project / "steelyard.yaml").write_text("packs: []")
    ran = steelyard("evalset", "init", "mine.yaml")
    assert "steelyard.yaml is there already" in ran.out
    assert "- name: mock-model" in ran.out


DEPLOYMENTS = """\
deployments:
  - {name: plain, harness: {id: nop}, model: {id: none}, environment: {id: host_process}}
  - name: keyed
    harness: {id: chat}
    model: {id: m, api_key: "${DEPLOY_KEY}", extra_headers: {X-Team: sk-literal-secret}}
"""


def test_deployments_are_listed_with_what_is_not_set(
    steelyard: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "steelyard.yaml").write_text(DEPLOYMENTS)
    monkeypatch.delenv("DEPLOY_KEY", raising=False)
    found = steelyard("deployment", "list", "--json").json["deployments"]
    assert [(one["name"], one["unset"]) for one in found] == [
        ("plain", []), ("keyed", ["DEPLOY_KEY"]),
    ]  # fmt: skip
    lines = steelyard("deployment", "list").out.splitlines()
    assert lines[0].split() == ["name", "harness", "model", "environment", "unset", "id"]
    assert "DEPLOY_KEY" in lines[2]


def test_no_secret_of_a_deployment_is_shown(
    steelyard: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "steelyard.yaml").write_text(DEPLOYMENTS)
    monkeypatch.setenv("DEPLOY_KEY", "sk-from-environment")
    for arguments in (
        ("deployment", "show", "keyed"),
        ("deployment", "show", "keyed", "--json"),
        ("deployment", "list", "--json"),
        ("config", "show"),
        ("config", "show", "--json"),
    ):
        ran = steelyard(*arguments)
        assert ran.status == 0
        assert "sk-" not in ran.out + ran.err, arguments
    assert "${DEPLOY_KEY}" in steelyard("deployment", "show", "keyed").out


def test_a_deployment_is_checked(steelyard: Run, project: Path) -> None:
    (project / "steelyard.yaml").write_text(DEPLOYMENTS)
    ran = steelyard("deployment", "check", "plain")
    assert ran.status == 0
    assert "nop calls no model" in ran.out
    assert "trust host" in ran.out
    keyed = steelyard("deployment", "check", "keyed", "--json")
    assert (keyed.status, "DEPLOY_KEY" in keyed.out) == (2, True)
    near = steelyard("deployment", "check", "plian")
    assert (near.status, "did you mean 'plain'?" in near.err) == (2, True)


def test_packs_are_listed_with_refs_and_kept_versions(steelyard: Run, project: Path) -> None:
    (project / "steelyard.yaml").write_text("packs: [packs/sums]")
    steelyard("pack", "init", "packs/sums")
    steelyard("pack", "init", "loose")
    made = steelyard("pack", "new-version", "packs/sums", "--json").json
    assert (made["was"], made["version"]) == (1, 2)
    assert steelyard("pack", "new-version", "packs/sums").status == 2
    found = steelyard("pack", "list", "--json").json["packs"]
    refs = [(one["from"], one["ref"]) for one in found]
    assert refs[:3] == [("project", "sums@2"), ("project", "sums@1"), ("folder", "./loose")]
    assert ("catalog", "catalog/code-review") in refs
    assert found[0]["id"] == made["id"]
    assert all(one["digest"] and one["valid"] for one in found)
    below = steelyard("pack", "list", "packs", "--json").json["packs"]
    assert [one["ref"] for one in below] == ["./packs/sums", "./packs/sums@1"]
    for ref in ("sums", "sums@1", "team/sums@v2", found[1]["id"]):
        assert steelyard("pack", "show", ref, "--json").json["slug"] == "sums"
    assert steelyard("pack", "show", "sums@1", "--json").json["id"] == found[1]["id"]


def test_a_malformed_pack_is_listed_with_what_is_wrong(steelyard: Run, project: Path) -> None:
    (project / "bad").mkdir()
    (project / "bad" / "pack.yaml").write_text("slug: [")
    (found,) = steelyard("pack", "list", ".", "--json").json["packs"]
    assert (found["valid"], found["slug"]) == (False, "?")
    assert "malformed" in steelyard("pack", "list").out


def test_the_manifests_schema_is_published(steelyard: Run) -> None:
    schema = steelyard("schema", "evalset").json
    assert schema["required"] == ["schema", "name", "packs", "agents"]
    json.dumps(schema)
