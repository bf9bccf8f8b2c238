"""Agent refs: a UUID or an exact name; no match, two matches, thousands of deployments."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.config.errors import BadInput, Where
from steelyard.config.source import Node, read_yaml
from steelyard.evalset import agent_refs
from steelyard.evalset.agent_refs import Agents, Deployment, deployment_of, resolve_agent

FIRST = "11111111-1111-1111-1111-111111111111"
MIXED = "AAAAAAAA-bbbb-CCCC-dddd-EEEEEEEEEEEE"


def one(text: str, folder: Path = Path("/project")) -> Deployment:
    return deployment_of(read_yaml(text, "steelyard.yaml"), folder)


def agents(*names: str) -> Agents:
    return Agents(one(f"{{name: {name}, harness: {{id: nop}}}}") for name in names)


def test_a_name_is_exact() -> None:
    known = agents("opus", "Opus")
    assert resolve_agent("opus", known).name == "opus"
    for wrong in ("OPUS", "opus ", "opu", ""):
        with pytest.raises(BadInput, match="no deployment"):
            resolve_agent(wrong, known)


def test_a_uuid_is_found_however_it_is_written() -> None:
    known = Agents([one(f"{{name: a, id: {FIRST}}}"), one(f"{{name: b, id: {MIXED}}}")])
    assert resolve_agent(FIRST, known).name == "a"
    assert resolve_agent(MIXED.lower(), known).name == "b"
    assert resolve_agent(MIXED.upper(), known).name == "b"


def test_a_uuid_that_nobody_wrote_is_derived_from_the_name_alone() -> None:
    plain, changed = one("{name: a}"), one("{name: a, model: {id: other}}")
    assert plain.uuid == changed.uuid == "f25db970-094c-59d4-ab6f-8407f3aa8264"
    assert plain.uuid != one("{name: b}").uuid
    assert resolve_agent(plain.uuid, Agents([plain])).name == "a"


def test_no_match_offers_the_nearest_names_at_the_refs_place() -> None:
    with pytest.raises(BadInput) as raised:
        resolve_agent("claude-opsu", agents("gpt", "claude-opus"), where=Where("s.yaml", 4, 2))
    (problem,) = raised.value.problems
    assert problem.where == Where("s.yaml", 4, 2)
    assert "'claude-opus'" in str(problem.remedy)


def test_a_project_without_deployments_is_told_where_they_are_written() -> None:
    with pytest.raises(BadInput, match="the project has none") as raised:
        resolve_agent("a", agents())
    assert "deployments:" in str(raised.value.problems[0].remedy)


def test_two_matches_are_both_listed_with_their_places() -> None:
    text = "- {name: a, harness: {id: nop}}\n- {name: a, harness: {id: oracle}}"
    nodes: list[Node] = read_yaml(text, "steelyard.yaml").value
    with pytest.raises(BadInput) as raised:
        resolve_agent("a", Agents(deployment_of(node, Path()) for node in nodes))
    message = raised.value.problems[0].message
    assert "steelyard.yaml:1:3" in message
    assert "steelyard.yaml:2:3" in message


def test_a_name_that_is_the_id_of_another_is_two_matches() -> None:
    known = Agents([one(f"{{name: a, id: {FIRST}}}"), one(f"{{name: {FIRST}}}")])
    with pytest.raises(BadInput, match="is named by 2"):
        resolve_agent(FIRST, known)


def test_a_deployment_that_is_called_by_its_own_id_is_one_match() -> None:
    known = Agents([one(f"{{name: {FIRST}, id: {FIRST}}}")])
    assert resolve_agent(FIRST, known).uuid == FIRST


def test_thousands_of_deployments_are_not_compared_for_a_ref_that_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("names were compared")

    node = one("{name: x, harness: {id: nop}}").node
    many = Agents(
        Deployment(f"agent-{number}", agent_refs.derived_uuid(str(number)), {}, node)
        for number in range(5000)
    )
    monkeypatch.setattr(agent_refs, "near_names", never)
    for number in range(5000):
        assert resolve_agent(f"agent-{number}", many).name == f"agent-{number}"
    with pytest.raises(BadInput, match="5000"):
        resolve_agent("absent", many, offers_names=False)


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=4), unique=True, max_size=6), st.text(max_size=4))
def test_a_ref_finds_exactly_the_deployment_of_that_name(names: list[str], ref: str) -> None:
    node = one("{name: x}").node
    known = Agents(
        Deployment(name, agent_refs.derived_uuid("deployment", name), {}, node) for name in names
    )
    found = known.find(ref)
    assert [agent.name for agent in found] == ([ref] if ref in names else [])


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("{name: a, harness: {id: ./mine.py:Agent}}", "/project/mine.py:Agent"),
        ("{name: a, harness: {id: ../mine.py:Agent}}", "/project/../mine.py:Agent"),
        ("{name: a, harness: {id: /abs/mine.py:Agent}}", "/abs/mine.py:Agent"),
        ("{name: a, harness: {id: package.module:Agent}}", "package.module:Agent"),
        ("{name: a, harness: {id: nop}}", "nop"),
        ("{name: a, harness: {id: '${HARNESS}'}}", "${HARNESS}"),
    ],
)
def test_paths_start_from_the_projects_folder(text: str, id_: str) -> None:
    assert one(text).parts["harness"].value["id"].value == id_


def digests(texts: Iterable[str]) -> set[str]:
    return {one(text).digest for text in texts}


def test_the_digest_is_of_what_is_written_and_of_no_secret() -> None:
    model = "{name: a, model: {id: m, params: {key: %s}}}"
    assert len(digests([model % "sk-one-secret", model % "sk-other-secret"])) == 1
    assert len(digests(["{name: a, model: {id: m}}", "{name: b, model: {id: m}}"])) == 1
    assert len(digests(["{name: a, model: {id: m}}", "{name: a, model: {id: n}}"])) == 2
    assert len(digests(["{name: a, harness: {id: x}}", "{name: a, harness: {id: x, y: 1}}"])) == 2
    assert len(digests(["{name: a, harness: {id: ./x.py:A}}"])) == 1
    assert len(digests([f"{{name: a, model: {{id: m, params: {{n: {2**80}}}}}}}"])) == 1
    here = "{name: a, harness: {id: ./x.py:A}}"
    assert one(here, Path("/one")).digest == one(here, Path("/two")).digest
