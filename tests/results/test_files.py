"""What writing a file of a run raises where the disk, or the folder, is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.results.files import StorageFailed, WritePoint, replace_atomically


def test_a_folder_that_became_a_file_is_a_failure_of_storage(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("no folder")
    with pytest.raises(StorageFailed, match="Not a directory"):
        replace_atomically(
            tmp_path / "run" / "progress.json",
            b"{}",
            WritePoint.PROGRESS_WRITTEN,
            WritePoint.PROGRESS_RENAMED,
        )
