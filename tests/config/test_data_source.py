"""Settings given as Python data: the same nodes as from files, placed by their paths."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from steelyard.config.data_source import read_data
from steelyard.config.errors import BadInput
from steelyard.config.source import plain


class Colour(Enum):
    RED = "red"


def _read(data: object, **more: Any) -> Any:
    return plain(read_data(data, layer="test", **more))


def test_plain_data_comes_back_as_it_was() -> None:
    data = {"a": [1, 2.5, True, None, "x"], "b": {"c": {}}}
    assert _read(data) == data


def test_paths_enums_tuples_and_secrets_become_plain() -> None:
    data = {"p": Path("a/b"), "e": Colour.RED, "t": (1, 2), "s": SecretStr("hidden-words")}
    assert _read(data) == {"p": "a/b", "e": "red", "t": [1, 2], "s": "hidden-words"}


def test_numbers_of_other_libraries_become_ours() -> None:
    import numpy as np

    found = _read({"i": np.int64(3), "f": np.float32(0.5)})
    assert found == {"i": 3, "f": 0.5}
    assert [type(value) for value in found.values()] == [int, float]


def test_a_value_knows_its_path() -> None:
    root = read_data({"a": [{"b": 1}]}, layer="test", prefix=("settings",))
    node = root.at(("a", 0, "b"))
    assert node is not None
    assert node.origin.where.field == "settings.a[0].b"
    assert node.origin.layer == "test"


def test_everything_that_is_no_setting_is_said_at_once_and_never_quoted() -> None:
    with pytest.raises(BadInput) as caught:
        _read({"a": {1, 2}, "b": [object()], 3: "x", "k": b"secret-bytes"})
    said = str(caught.value)
    assert "a: a value of type set is no setting" in said
    assert "b[0]: a value of type object is no setting" in said
    assert "a key must be text, not of type int" in said
    assert "secret-bytes" not in said
    assert len(caught.value.problems) == 4


def test_data_that_contains_itself_or_is_too_deep_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = [loop]
    with pytest.raises(BadInput, match=r"again\[0\]: the data contains itself"):
        _read(loop)
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"d": deep}
    with pytest.raises(BadInput, match="nested more than 100 levels deep"):
        _read(deep)


def test_one_value_may_stand_in_two_places() -> None:
    shared = {"x": 1}
    assert _read({"a": shared, "b": shared}) == {"a": {"x": 1}, "b": {"x": 1}}
