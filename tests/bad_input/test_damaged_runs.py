"""A run whose files are damaged is gone on from rightly, or refused by name: never a wrong score.

The oracle is the score itself: a digest of all that the scorer saw, and of a stamp that tells work
of the damaged run from work that was done again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.config.errors import BadInput
from steelyard.engine.events import LaunchResult, RunOutcome
from steelyard.results.reader import RunReader
from tests.bad_input.weighing import KINDS, weight, work_of
from tests.engine.launching import records, request, run_all

pytestmark = pytest.mark.integration

COMPONENTS = Path(__file__).with_name("weighing.py")
SOURCE = "source"


def asked(folder: Path, version: str = "1", **more: Any) -> dict[str, Any]:
    return request(
        benchmark={"id": f"{COMPONENTS}:Weighing", "version": version, **more.pop("scorer", {})},
        harness={"id": f"{COMPONENTS}:Stamped", "folder": str(folder)},
        execution={"save_artifacts": ["out", {"globs": ["found/**"]}]},
        **more,
    )


@dataclass(frozen=True)
class Made:
    """A whole run, and one whose scoring never came to an end."""

    folder: Path
    """What the agent reads its stamp from: part of the identity, so it stays where it is."""
    results: dict[str, Path]
    files: dict[str, list[str]]
    """Of each: its files, relative to the results folder."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    results, files = {}, {}
    for name, scorer in (("scored", {}), ("pending", {"fails": True})):
        place = folder / name
        place.mkdir()
        (folder / "stamp").write_text("first")
        run_all(place, asked(folder, scorer=scorer, output={"run_id": SOURCE}))
        if name == "pending":
            # As after a kill: agents are done and their work is kept, and no record says so.
            (place / "results" / "r" / SOURCE / "attempts.jsonl").write_bytes(b"")
        results[name] = place / "results"
        files[name] = sorted(
            path.relative_to(place / "results").as_posix()
            for path in (place / "results").rglob("*")
            if path.is_file()
        )
    return Made(folder, results, files)


MAX_HARMED_BYTES = 10_000_000


@dataclass(frozen=True)
class Harm:
    """What is done to one file of a run."""

    kind: str
    place: float
    bit: int

    def do(self, path: Path, elsewhere: Path) -> None:
        """Do it to a file that is still a plain one: never through a link, nor to holes.

        Args:
            path: the file.
            elsewhere: a file outside of the run, for links.
        """
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_HARMED_BYTES:
            return
        data = bytearray(path.read_bytes())
        at = int(self.place * len(data))
        if self.kind == "flip" and data:
            data[min(at, len(data) - 1)] ^= 1 << self.bit
        elif self.kind == "cut":
            del data[at:]
        elif self.kind == "zeros":
            data[at:] = bytes(len(data) - at)
        elif self.kind == "twice":
            data[at:at] = data[at : at + 100]
        path.write_bytes(bytes(data))
        if self.kind == "gone":
            path.unlink()
        elif self.kind == "fifo":
            path.unlink()
            os.mkfifo(path)
        elif self.kind == "folder":
            path.unlink()
            path.mkdir()
        elif self.kind == "circle":
            path.unlink()
            path.symlink_to(path.name)
        elif self.kind == "elsewhere":
            path.unlink()
            path.symlink_to(elsewhere)
        elif self.kind == "endless":
            path.unlink()
            path.symlink_to("/dev/zero")
        elif self.kind == "holes":
            os.truncate(path, 2**40)


HARMS = st.builds(
    Harm,
    st.sampled_from(
        (
            *("flip", "flip", "flip", "cut", "zeros", "twice", "gone"),
            *("fifo", "folder", "circle", "elsewhere", "endless", "holes"),
        )
    ),
    st.floats(0, 1),
    st.integers(0, 7),
)


def gone_on_from(
    made: Made, name: str, version: str, harms: list[tuple[str, Harm]], *, by_name: bool = False
) -> None:
    """Damage a copy of a run, go on from it, and hold every score against what was seen."""
    with tempfile.TemporaryDirectory(prefix="damaged-") as text:
        place = Path(text)
        elsewhere = place / "elsewhere"
        elsewhere.write_text("root:x:0:0\n")
        shutil.copytree(made.results[name], place / "results")
        for path, harm in harms:
            harm.do(place / "results" / path, elsewhere)
        ran = made.folder / "ran"
        ran.write_text("")
        (made.folder / "stamp").write_text("second")
        runtime = {"reuse_run_id": SOURCE} if by_name else {"reuse": True}
        try:
            result = run_all(place, asked(made.folder, version, runtime=runtime))
        except BadInput as refused:  # it was seen when planning
            said = str(refused)
            assert by_name
            assert f"the run '{SOURCE}' cannot be reused" in said
            assert ran.read_text() == ""
            return
        again, (ended,) = ran.read_text().split(), result.requests
        if by_name and ended.outcome is RunOutcome.FAILED:
            assert f"the run '{SOURCE}' cannot be reused" in (ended.reason or "")
            assert again == []
            return
        check(result, version, again)
        note, warnings = str(ended.reuse), warnings_of(result)
        assert not again or "no record of it" in note or "passed over" in note or warnings, note
        for line in warnings:
            # Of a tree with one digest it is the tree that is named.
            named = [part for path, _ in harms for part in Path(path).parts[-3:]]
            assert any(part in line for part in named), line


def check(result: LaunchResult, version: str, again: list[str]) -> None:
    assert result.outcome is RunOutcome.COMPLETED, result.requests[0].reason
    found = {record.task_id: record for record in records(result)}
    assert set(found) == set(KINDS)
    for kind, record in found.items():
        stamp = "second" if kind in again else "first"
        assert (record.reused_from is None) == (kind in again)
        assert record.metrics == {"weight": weight(version, *work_of(kind, stamp))}, kind
        run_dir = result.requests[0].run_dir
        kept = {one["path"] for one in record.artifacts}
        for path in kept:
            assert stamp.encode() in (run_dir / path).read_bytes()
        folder = run_dir / "tasks" / kind / "attempt-1" / "artifacts"
        on_disk = {p.relative_to(run_dir).as_posix() for p in folder.rglob("*") if p.is_file()}
        assert on_disk == kept
    assert sorted(again) == sorted(set(again)), "an agent ran twice"


def warnings_of(result: LaunchResult) -> list[str]:
    events = RunReader(result.requests[0].run_dir).events()
    return [str(event["message"]) for event in events if event["kind"] == "warning"]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.sampled_from(["scored", "pending"]),
    st.sampled_from(["1", "2"]),
    st.booleans(),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), HARMS), min_size=1, max_size=3),
)
def test_whatever_is_damaged_no_score_is_wrong(
    made: Made, name: str, version: str, by_name: bool, harms: list[tuple[float, Harm]]
) -> None:
    files = made.files[name]
    chosen = [(files[int(at * len(files))], harm) for at, harm in harms]
    gone_on_from(made, name, version, chosen, by_name=by_name)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("name", ["scored", "pending"])
def test_what_is_whole_is_taken_whole(made: Made, name: str, version: str) -> None:
    (made.folder / "ran").write_text("")
    gone_on_from(made, name, version, [])
    assert (made.folder / "ran").read_text() == ""


@pytest.mark.parametrize("name", ["scored", "pending"])
def test_a_flipped_bit_in_any_file_gives_no_wrong_score(made: Made, name: str) -> None:
    """In the middle, where an answer, an input or a record has its content."""
    for path in made.files[name]:
        gone_on_from(made, name, "2", [(path, Harm("flip", 0.5, 0))])
