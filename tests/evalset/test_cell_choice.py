"""Which cells a person means by a key or a pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.evalset.cell_choice import NothingMatches, chosen_cells, matches
from tests.evalset.living_sets import living_set


def keys(tmp_path: Path, *patterns: str, agents: tuple[str, ...] = ("base", "new[1]")) -> list[str]:
    made = living_set(tmp_path, agents=agents)
    return [cell.matrix_key for cell in chosen_cells(made.opened.cells, patterns)]


def test_no_pattern_means_every_cell(tmp_path: Path) -> None:
    assert len(keys(tmp_path)) == 4


def test_a_pattern_crosses_slashes(tmp_path: Path) -> None:
    assert keys(tmp_path, "*base*") == ["refunds/base/1", "refunds/base/2"]
    assert matches("*/1", "a/b/1")


def test_a_key_written_whole_means_itself_whatever_it_holds(tmp_path: Path) -> None:
    assert keys(tmp_path, "refunds/new[1]/2") == ["refunds/new[1]/2"]


def test_what_matches_nothing_is_refused_with_the_nearest_keys(tmp_path: Path) -> None:
    with pytest.raises(NothingMatches) as raised:
        keys(tmp_path, "refunds/bass/1", "*/base/*", "zzz")
    first, second = raised.value.problems
    assert first.remedy is not None
    assert "'refunds/base/1'" in first.remedy
    assert second.message == "no cell matches 'zzz'"
    assert second.remedy is not None
    assert "there are 4" in second.remedy
