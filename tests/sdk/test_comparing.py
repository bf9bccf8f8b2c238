"""`compare` gives what the command gives, as typed values."""

from __future__ import annotations

from pathlib import Path

import pytest

import steelyard as sy
from tests.results.comparing import FATAL, NO, YES, a_side


def two_runs(folder: Path) -> tuple[Path, Path]:
    first = {"w": [NO], "x": [NO], "y": [YES], "z": [NO]}
    second = {"w": [YES], "x": [YES], "y": [YES], "z": [FATAL], "v": [YES]}
    return a_side(folder, "a", first), a_side(folder, "b", second)


def test_two_runs_are_compared(tmp_path: Path) -> None:
    first, second = two_runs(tmp_path)
    found = sy.compare(first, sy.load_run(second))
    assert found.difference.value == pytest.approx(2 / 3)
    assert (found.wins, found.ties, found.losses) == (2, 1, 0)
    assert (found.test, found.p, found.p_standard_error) == ("mcnemar", 0.5, None)
    assert (found.is_official, found.only_second) == (False, ("v",))
    assert found.bounds == pytest.approx((2 / 4, 3 / 4))
    assert [task.task_id for task in found.tasks if task.difference] == ["w", "x"]
    assert str(found).startswith("accuracy avg@1: +0.667 [")
    assert str(found).endswith("2 wins, 1 ties, 0 losses, not official")
    assert any("not official" in warning for warning in found.warnings)


def test_a_folder_stands_for_its_newest_run(tmp_path: Path) -> None:
    first, _ = two_runs(tmp_path / "one")
    _, second = two_runs(tmp_path / "two")
    second.parent.joinpath("a").rename(tmp_path / "away")
    assert sy.compare(str(first), second.parent).second == second


def test_what_cannot_be_compared_is_bad_input(tmp_path: Path) -> None:
    first, _ = two_runs(tmp_path)
    with pytest.raises(sy.BadInput, match="is the same run as"):
        sy.compare(first, first)
    with pytest.raises(sy.BadInput, match="type int is no run"):
        sy.compare(first, 3)  # type: ignore[arg-type]
    with pytest.raises(sy.BadInput, match="no run here"):
        sy.compare(first, tmp_path / "nowhere")
