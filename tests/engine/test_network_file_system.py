"""A launch says that its results lie where locks and syncs may not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.engine.events import Progress, RequestResult
from steelyard.results.journal import EventKind
from steelyard.results.reader import RunReader
from tests.engine.launching import request, run_all


class _Notices:
    def __init__(self) -> None:
        self.said: list[tuple[str | None, str]] = []

    def tick(self, progress: tuple[Progress, ...]) -> None:
        """Progress is no notice."""

    def request_ended(self, result: RequestResult) -> None:
        """Nor is an end."""

    def notice(self, request: str | None, message: str) -> None:
        self.said.append((request, message))


def test_a_launch_on_a_network_file_system_warns_once_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.results.run_folder.network_file_system", lambda _folder: "NFS")
    notices = _Notices()
    result = run_all(tmp_path, request(), observer=notices)
    root = result.requests[0].run_dir
    said = [(name, text) for name, text in notices.said if "NFS" in text]
    assert said == [("r", f"{root} lies on NFS: locks and syncs may not hold there")]
    events = RunReader(root).events()
    assert any(e["kind"] == EventKind.WARNING and "NFS" in e["message"] for e in events)
