"""Folders of cells: their numbers tell them apart, and names stay what they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steelyard.config.names import is_path_component
from steelyard.evalset.layout import cell_folder


@given(st.integers(0, 1999), st.text(max_size=300))
def test_a_folder_is_a_name_that_stays_as_it_is(index: int, key: str) -> None:
    folder = cell_folder(index, key)
    assert is_path_component(folder)
    assert folder.startswith(f"{index:04d}")


def test_long_keys_are_cut_and_short_ones_kept() -> None:
    assert cell_folder(7, "refunds/base/1") == "0007-refunds-base-1"
    long = cell_folder(0, f"refunds/{'x' * 200}/1")
    assert (len(long), long[:10]) == (80, "0000-refun")
    assert cell_folder(3, "///") == "0003"
