"""References of a set: every fault at once, at its place; unset keys before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.config.errors import BadInput, Problem
from steelyard.evalset.expansion import expand
from steelyard.evalset.manifest import read_manifest
from steelyard.evalset.project import read_project
from steelyard.evalset.references import References, resolve_references
from tests.evalset.projects import agent, write_manifest, write_pack, write_project

KEYED = {
    "name": "keyed",
    "harness": {"id": "chat"},
    "model": {"id": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "${SET_KEY}"},
}


def resolved(
    project: Path, *agents: str, environ: dict[str, str] | None = None, **fields: Any
) -> References:
    read = read_manifest(write_manifest(project, *agents, **fields))
    found = read_project(environ=environ or {}, cwd=project)
    return resolve_references(read, expand(read), found)


def faults(project: Path, *agents: str, **fields: Any) -> list[Problem]:
    with pytest.raises(BadInput) as raised:
        resolved(project, *agents, **fields)
    return list(raised.value.problems)


def test_packs_and_agents_are_found_by_what_the_manifest_says(tmp_path: Path) -> None:
    write_project(tmp_path, agent("nothing", "nop"))
    found = resolved(tmp_path, "nothing", packs=["p", "./packs/p", "catalog/code-review"])
    assert [pack.slug for pack in found.packs.values()] == ["p", "p", "code-review"]
    assert list(found.agents) == [("nothing", None)]
    assert len(found.opened["p"].tasks) == 3


def test_every_fault_is_said_at_once_with_its_place(tmp_path: Path) -> None:
    write_project(tmp_path, agent("nothing", "nop"), KEYED, agent("odd", "no_such_harness"))
    found = faults(tmp_path, "keyed", "absent", "odd", packs=["p", "q", "catalog/nope"])
    places = {(Path(str(one.where.file)).name, one.where.field) for one in found}
    assert places == {
        ("set.yaml", "packs[1]"),
        ("set.yaml", "packs[2]"),
        ("set.yaml", "agents[1].deployment"),
        ("steelyard.yaml", "deployments[1].model.api_key"),
        ("steelyard.yaml", "deployments[2].harness.id"),
    }
    assert all(one.where.line for one in found)


def test_a_key_that_is_not_set_is_named_with_its_deployment(tmp_path: Path) -> None:
    write_project(tmp_path, KEYED)
    (problem,) = faults(tmp_path, "keyed")
    assert problem.message == "the deployment 'keyed': ${SET_KEY} is not set"
    assert "export SET_KEY" in str(problem.remedy)
    assert resolved(tmp_path, "keyed", environ={"SET_KEY": "sk-12345678"}).agents


def test_a_key_of_a_deployment_that_is_not_used_is_not_asked_for(tmp_path: Path) -> None:
    write_project(tmp_path, KEYED, agent("nothing", "nop"))
    assert resolved(tmp_path, "nothing").agents
    assert resolved(tmp_path, "nothing", "keyed", include=["*/nothing/*"]).agents


def test_a_key_that_two_labels_need_is_asked_for_once(tmp_path: Path) -> None:
    write_project(tmp_path, KEYED)
    labelled = [{"deployment": "keyed", "label": name} for name in ("x", "y")]
    assert len(faults(tmp_path, agents=labelled)) == 1


def test_a_malformed_pack_says_all_that_is_wrong_with_it(tmp_path: Path) -> None:
    write_project(tmp_path, agent("nothing", "nop"))
    file = tmp_path / "packs" / "p" / "pack.yaml"
    pack = json.loads(file.read_text())
    file.write_text(json.dumps({**pack, "cases": [], "nonsense": 1}))
    found = faults(tmp_path, "nothing")
    assert {"nonsense", "cases"} <= {one.where.field for one in found}
    assert all(str(one.where.file).endswith("packs/p/pack.yaml") for one in found)


def test_a_scanner_that_asks_a_judge_needs_one(tmp_path: Path) -> None:
    write_project(tmp_path, agent("nothing", "nop"))
    (problem,) = faults(tmp_path, "nothing", scanners=["instruction-injection"])
    assert problem.where.field == "scanners[0]"
    assert "judge" in str(problem.remedy)


def test_a_scanner_whose_file_is_missing_is_said_where_it_is_named(tmp_path: Path) -> None:
    write_project(tmp_path, agent("nothing", "nop"))
    (problem,) = faults(tmp_path, "nothing", scanners=["tool-misuse", "./none.yaml"])
    assert "there is no file" in problem.message
    assert problem.where.field == "scanners[1]"
    assert problem.where.line is not None


def test_a_judge_of_null_is_none(tmp_path: Path) -> None:
    write_project(tmp_path, agent("nothing", "nop"), judge=None)
    assert resolved(tmp_path, "nothing").judge is None


def test_the_judges_key_is_asked_for_only_where_somebody_judges(tmp_path: Path) -> None:
    judge = {"model": {"id": "j", "base_url": "http://127.0.0.1:9/v1", "api_key": "${JUDGE_KEY}"}}
    write_project(tmp_path, agent("nothing", "nop"), judge=judge)
    assert resolved(tmp_path, "nothing").judge is not None
    (problem,) = faults(tmp_path, "nothing", scanners=["instruction-injection"])
    assert problem.message == "${JUDGE_KEY} is not set"


def test_the_judge_is_handed_to_packs_that_ask_one_and_to_no_others(tmp_path: Path) -> None:
    judge = {"model": {"id": "j", "base_url": "http://127.0.0.1:9/v1"}, "samples": 3}
    write_project(tmp_path, agent("nothing", "nop"), judge=judge)
    folder = write_pack(tmp_path / "judged")
    pack = json.loads((folder / "pack.yaml").read_text())
    pack["scoring"]["validators"] = [{"type": "judge", "rubric": "Is it right?", "show": []}]
    (folder / "pack.yaml").write_text(json.dumps(pack))
    found = resolved(tmp_path, "nothing", packs=["p", "./judged"])
    assert found.judge is not None
    plain, judged = (found.benchmark(ref, found.judge) for ref in ("p", "./judged"))
    assert set(plain.value) == {"id"}
    assert set(judged.value) == {"id", "judge"}


def test_paths_of_packs_start_from_the_manifests_folder(tmp_path: Path) -> None:
    write_project(tmp_path, agent("nothing", "nop"))
    write_pack(tmp_path / "sets" / "near")
    path = tmp_path / "sets" / "set.yaml"
    path.write_text(
        "{schema: evalset/v1, name: n, packs: [./near], agents: [{deployment: nothing}]}"
    )
    read = read_manifest(path)
    found = resolve_references(read, expand(read), read_project(environ={}, cwd=tmp_path))
    assert found.packs["./near"].path == str(tmp_path / "sets" / "near")


def test_nothing_is_made(tmp_path: Path) -> None:
    write_project(tmp_path, agent("nothing", "nop"))
    write_manifest(tmp_path, "nothing")
    before = sorted(tmp_path.rglob("*"))
    resolved(tmp_path, "nothing", packs=["p", "catalog/code-review"])
    assert sorted(tmp_path.rglob("*")) == before


def test_a_model_without_a_name_is_said_with_its_deployment(tmp_path: Path) -> None:
    named = {**KEYED, "model": {"id": "${MODEL}", "base_url": "http://127.0.0.1:9/v1"}}
    write_project(tmp_path, named)
    with pytest.raises(BadInput, match=r"MODEL.* is empty"):
        resolved(tmp_path, "keyed", environ={"MODEL": ""})
