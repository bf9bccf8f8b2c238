"""Names become safe path components, and those that clash are told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.config.names import (
    clash_key,
    is_device_name,
    is_path_component,
    joined,
    normalise,
    short_id,
)


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("tb21", "tb21"),
        ("A b/c", "A-b-c"),
        ("a  --  b", "a-b"),
        ("..hidden", "hidden"),
        ("--dash", "dash"),
        ("ﬁne", "fine"),
        ("Ünï", "Ünï"),
        ("模型", "模型"),
        ("🎉", ""),
        ("a.b_c-d", "a.b_c-d"),
    ],
)
def test_a_name_becomes_one_component(name: str, component: str) -> None:
    assert normalise(name) == component


@given(st.text(max_size=400))
def test_a_component_is_always_safe_and_stays_itself(name: str) -> None:
    component = normalise(name)
    assert "/" not in component
    assert "\0" not in component
    assert not component.startswith((".", "-"))
    assert len(component.encode()) <= 220
    if len(component) <= 80:
        assert normalise(component) == component


def test_long_names_keep_eighty_characters_and_a_hash_of_all() -> None:
    one, two = normalise("x" * 200 + "a"), normalise("x" * 200 + "b")
    assert one.startswith("x" * 80 + "-")
    assert one != two


def test_case_and_trailing_dots_clash() -> None:
    assert clash_key("Ab") == clash_key("aB")
    assert clash_key("a.") == clash_key("a")
    assert clash_key("a") != clash_key("b")


@pytest.mark.parametrize("name", ["nul", "CON", "com1", "LPT9.txt", "Aux."])
def test_devices_of_windows_are_no_folder_names(name: str) -> None:
    assert is_device_name(name)
    assert not is_path_component(name)


@pytest.mark.parametrize("text", ["", ".", "..", "a/b", "a b", "-x", "x\0", "a\nb"])
def test_what_is_no_component_is_refused(text: str) -> None:
    assert not is_path_component(text)


def test_unnamed_requests_join_model_benchmark_and_harness() -> None:
    assert joined("org/m-1", "humaneval", "chat") == "org-m-1_humaneval_chat"
    assert joined("m", "./packs/refund-triage/", "./x/agent.py:MyAgent") == (
        "m_refund-triage_MyAgent"
    )
    assert short_id("pkg.mod:Class") == "Class"
