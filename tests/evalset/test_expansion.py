"""Expansion against a model of a few lines, and what it refuses."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.config.errors import BadInput
from steelyard.config.source import Node, Origin, Where
from steelyard.evalset.expansion import (
    MAX_COMBINATIONS,
    Expansion,
    TooManyCells,
    derived_seed,
    expand,
)
from steelyard.evalset.manifest import checked_manifest, read_manifest

names = st.text(
    st.sampled_from("ab/ -@.é\u00a0"), min_size=1, max_size=5
).filter(lambda text: bool(text.strip()))  # fmt: skip


def node(value: Any) -> Node:
    origin = Origin("test", Where("set.yaml", 1, 1))
    if isinstance(value, dict):
        return Node({key: node(item) for key, item in value.items()}, origin)
    if isinstance(value, list):
        return Node([node(item) for item in value], origin)
    return Node(value, origin)


def expanded(document: dict[str, Any], cap: int | None = None) -> Expansion:
    whole = {"schema": "evalset/v1", "name": "n", **document}
    return expand(checked_manifest(node(whole)), max_combinations=cap)


def model_of(document: dict[str, Any]) -> list[tuple[str, ...]] | None:
    """Give the parts of each key as the contract says it; None where two keys are one."""

    def san(text: str) -> str:
        return text.strip().replace(" ", "-")

    agents = [agent.get("label") or agent["deployment"] for agent in document["agents"]]
    axis = document.get("models") or [None]
    repeats = range(1, (document.get("repeats") or 1) + 1)
    cells = [
        (*(san(part) for part in (pack, agent, model) if part is not None), str(repeat))
        for pack, agent, model, repeat in itertools.product(
            document["packs"], agents, axis, repeats
        )
    ]
    keys = ["/".join(cell) for cell in cells]
    labels = [san(agent["label"]) for agent in document["agents"] if "label" in agent]
    if len(set(labels)) < len(labels) or len(set(keys)) < len(keys):
        return None
    return cells


documents = st.fixed_dictionaries(
    {
        "packs": st.lists(names, min_size=1, max_size=3),
        "agents": st.lists(
            st.fixed_dictionaries({"deployment": names}, optional={"label": names}),
            min_size=1,
            max_size=3,
        ),
    },
    optional={
        "models": st.none() | st.lists(names, max_size=2),
        "repeats": st.none() | st.integers(1, 3),
    },
)


@settings(deadline=None)
@given(documents)
def test_cells_are_those_of_the_model_in_its_order(document: dict[str, Any]) -> None:
    wanted = model_of(document)
    if wanted is None:
        with pytest.raises(BadInput):
            expanded(document)
        return
    cells = expanded(document).cells
    assert [cell.matrix_key for cell in cells] == ["/".join(parts) for parts in wanted]
    assert [cell.index for cell in cells] == list(range(len(cells)))


@settings(deadline=None)
@given(documents)
def test_a_seed_depends_on_the_repeat_alone(document: dict[str, Any]) -> None:
    if model_of(document) is None:
        return
    by_repeat: dict[int, set[int]] = {}
    for cell in expanded(document).cells:
        by_repeat.setdefault(cell.repeat, set()).add(cell.seed)
    assert all(len(seeds) == 1 for seeds in by_repeat.values())
    assert len({*itertools.chain(*by_repeat.values())}) == len(by_repeat)


@settings(deadline=None)
@given(st.text(max_size=20), st.integers(1, 10**9))
def test_a_derived_seed_is_positive_and_has_31_bits(name: str, repeat: int) -> None:
    assert 1 <= derived_seed(name, repeat) < 2**31
    assert derived_seed(name, repeat) == derived_seed(name, repeat)


def test_derived_seeds_stay_what_they_are() -> None:
    """Sets that were made are gone on with: these numbers never change."""
    assert derived_seed("first-sweep", 1) == 1747195396
    assert derived_seed("first-sweep", 2) == 325422488


SMALL: dict[str, Any] = {"packs": ["p", "q"], "agents": [{"deployment": "a"}], "repeats": 2}


@pytest.mark.parametrize(
    ("repeats", "count"),
    [
        (1001, "2002 combinations (2 packs x 1 agents x 1 models x 1001 repeats)"),
        (2**64, f"{2**65} combinations"),
        (10**40, f"{2 * 10**40} combinations"),
    ],
)
def test_a_product_above_the_cap_is_refused_exactly_and_before_anything_is_built(
    repeats: int, count: str
) -> None:
    with pytest.raises(TooManyCells) as raised:
        expanded({**SMALL, "repeats": repeats})
    assert count in str(raised.value)
    assert f"at most {MAX_COMBINATIONS}" in str(raised.value)


def test_the_cap_itself_is_allowed() -> None:
    assert len(expanded({**SMALL, "repeats": 1000}).cells) == MAX_COMBINATIONS


@pytest.mark.parametrize("cap", [0, -1, 2001, 10**30])
def test_the_cap_cannot_be_raised(cap: int) -> None:
    with pytest.raises(BadInput, match="can only lower the cap of 2000"):
        expanded(SMALL, cap)


def test_a_lower_cap_holds_before_cells_are_chosen() -> None:
    assert len(expanded(SMALL, 4).cells) == 4
    with pytest.raises(TooManyCells, match="4 combinations"):
        expanded({**SMALL, "include": ["p/*"]}, 3)


@pytest.mark.parametrize(
    ("chosen", "keys"),
    [
        ({"include": ["p/*"]}, ["p/a/1", "p/a/2"]),
        ({"exclude": ["*/2"]}, ["p/a/1", "q/a/1"]),
        ({"include": ["p/*", "q/a/1"], "exclude": ["p/a/1"]}, ["p/a/2", "q/a/1"]),
        ({"include": ["[pq]/?/1"]}, ["p/a/1", "q/a/1"]),
        ({"include": None}, ["p/a/1", "p/a/2", "q/a/1", "q/a/2"]),
    ],
)
def test_include_and_exclude_choose_by_key(chosen: dict[str, Any], keys: list[str]) -> None:
    assert [cell.matrix_key for cell in expanded({**SMALL, **chosen}).cells] == keys


@pytest.mark.parametrize(
    "chosen", [{"include": ["P/*"]}, {"exclude": ["*"]}, {"include": []}, {"include": ["x"]}]
)
def test_a_choice_that_leaves_no_cell_is_refused(chosen: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="include and exclude leave no cell"):
        expanded({**SMALL, **chosen})


def test_a_clash_names_both_cells() -> None:
    with pytest.raises(BadInput) as raised:
        expanded({"packs": ["a/b", "a"], "agents": [{"deployment": "b/c"}, {"deployment": "c"}]})
    message = raised.value.problems[0].message
    assert "'a/b/c/1'" in message
    assert "pack 'a/b', agent 'c'" in message
    assert "pack 'a', agent 'b/c'" in message


def test_many_clashes_are_counted_not_listed() -> None:
    with pytest.raises(BadInput) as raised:
        expanded({"packs": ["p" + " " * n for n in range(40)], "agents": [{"deployment": "a"}]})
    assert len(raised.value.problems) == 6
    assert "34 more cells" in raised.value.problems[-1].message
    with pytest.raises(BadInput) as raised:
        expanded({"packs": ["p"] * 40, "agents": [{"deployment": "a"}]})
    assert len(raised.value.problems) == 6
    assert "34 more that stand twice" in raised.value.problems[-1].message


def test_numbers_beyond_64_bits_are_read_exactly_from_both_formats(tmp_path: Path) -> None:
    number = 2**70 + 1
    text = '{"schema": "evalset/v1", "name": "n", "packs": ["p"], '
    text += f'"agents": [{{"deployment": "a"}}], "repeats": {number}}}'
    for name in ("set.json", "set.yaml"):
        (tmp_path / name).write_text(text)
        with pytest.raises(TooManyCells, match=f"^.*{number} combinations"):
            expand(read_manifest(tmp_path / name))


@pytest.mark.parametrize(
    ("axis", "item", "line", "remedy"),
    [
        ("agents", "{deployment: a}", 4, "a label of its own"),
        ("packs", "q", 3, "take one of them out"),
        ("models", "m", 5, "take one of them out"),
    ],
)
def test_what_is_listed_twice_is_said_once_with_its_line(
    tmp_path: Path, axis: str, item: str, line: int, remedy: str
) -> None:
    lists = {"packs": "q", "agents": "{deployment: a}", "models": "m"}
    lists[axis] += f", {item}"
    path = tmp_path / "set.yaml"
    path.write_text(
        "schema: evalset/v1\nname: n\n"
        + "".join(f"{name}: [{items}]\n" for name, items in lists.items())
        + "repeats: 3\n"
    )
    with pytest.raises(BadInput) as raised:
        expand(read_manifest(path))
    (problem,) = raised.value.problems
    assert problem.where.line == line
    assert problem.message.startswith(f"{axis}[0] and {axis}[1] are the same: ")
    assert remedy in str(problem.remedy)
