"""`progress.json` is replaced at most twice a second, and always at the end."""

from __future__ import annotations

from pathlib import Path

import orjson

from steelyard.results.progress_file import ProgressFile
from tests.results.workload import a_run


def test_a_snapshot_is_written_at_most_twice_a_second(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "one")
    folder.lock.release()
    progress = ProgressFile(folder)
    moments = [tenth / 10 for tenth in range(100, 121)]  # two seconds
    written = [moment for moment in moments if progress.write({"at": moment}, moment)]
    assert written == [10.0, 10.5, 11.0, 11.5, 12.0]


def test_a_snapshot_that_comes_too_early_leaves_the_old_one(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "one")
    folder.lock.release()
    progress = ProgressFile(folder)
    assert progress.write({"ended": 1}, 10.0)
    assert not progress.write({"ended": 2}, 10.49)
    assert orjson.loads(folder.files.progress.read_bytes()) == {
        "schema": "progress/1",
        "run_id": "one",
        "ended": 1,
    }


def test_the_last_snapshot_is_written_however_early_it_comes(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "one")
    folder.lock.release()
    progress = ProgressFile(folder)
    assert progress.write({"ended": 1}, 10.0)
    assert progress.write({"ended": 2}, 10.1, is_last=True)
    assert orjson.loads(folder.files.progress.read_bytes())["ended"] == 2
