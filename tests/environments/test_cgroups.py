"""Which cgroups are used is found, not assumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.environments import cgroups
from steelyard.environments.cgroups import Limits, Slot


def _folder(path: Path, **files: str) -> Path:
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text)
    return path


def test_no_cgroups_are_no_slots(tmp_path: Path) -> None:
    assert cgroups.slots(root=tmp_path, own="0::/\n") == []
    assert cgroups.slots(root=tmp_path, own="4:memory:/a\n3:cpu,cpuacct:/\n") == []


def test_version_1_controllers_are_found_where_this_process_stands(tmp_path: Path) -> None:
    memory = _folder(tmp_path / "memory" / "box")
    _folder(tmp_path / "cpu,cpuacct")
    own = "4:memory:/box\n3:cpu,cpuacct:/\n2:freezer:/\n0::/\n"
    assert cgroups.slots(root=tmp_path, own=own) == [
        Slot(memory, 1, frozenset({"memory"})),
        Slot(tmp_path / "cpu,cpuacct", 1, frozenset({"cpu"})),
    ]


def test_version_2_needs_controllers_that_are_handed_down(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    parent = _folder(
        tmp_path / "app.slice", cgroup__subtree_control="memory pids\n", cgroup__procs=""
    )
    _folder(parent / "x.scope", cgroup__subtree_control="", cgroup__procs="")
    own = "0::/app.slice/x.scope\n"
    assert cgroups.slots(root=tmp_path, own=own) == [Slot(parent, 2, frozenset({"memory", "pids"}))]
    (parent / "cgroup.subtree_control").write_text("\n")
    assert cgroups.slots(root=tmp_path, own=own) == []


def test_a_limit_without_a_controller_is_not_claimed(tmp_path: Path) -> None:
    slot = Slot(_folder(tmp_path / "v2"), 2, frozenset({"pids"}))
    group = cgroups.make("t", Limits(memory_bytes=1000, processes=5, cpu=0.5), among=[slot])
    assert group.controllers == {"pids"}
    assert (group.folders[0] / "pids.max").read_text() == "5"
    assert group.folders[0].name.startswith("steelyard-t-")


@pytest.mark.parametrize(
    ("version", "files"),
    [
        (1, {"memory.limit_in_bytes": "1000", "pids.max": "5", "cpu.cfs_quota_us": "50000"}),
        (2, {"memory.max": "1000", "pids.max": "5", "cpu.max": "50000 100000"}),
    ],
)
def test_limits_are_written_in_each_versions_form(
    tmp_path: Path, version: int, files: dict[str, str]
) -> None:
    slot = Slot(tmp_path, version, frozenset({"memory", "pids", "cpu"}))
    group = cgroups.make("t", Limits(memory_bytes=1000, processes=5, cpu=0.5), among=[slot])
    (folder,) = group.folders
    assert {name: (folder / name).read_text() for name in files} == files
    assert group.controllers == {"memory", "pids", "cpu"}


def test_a_slot_that_refuses_is_left_out(tmp_path: Path) -> None:
    slot = Slot(tmp_path / "gone", 1, frozenset({"memory"}))
    group = cgroups.make("t", Limits(memory_bytes=1000), among=[slot])
    assert (group.folders, group.controllers) == ((), frozenset())


def test_sessions_share_one_group_where_processors_are_shared_out(tmp_path: Path) -> None:
    cpu = Slot(_folder(tmp_path / "cpu"), 1, frozenset({"cpu"}))
    memory = Slot(_folder(tmp_path / "memory"), 1, frozenset({"memory"}))
    group = cgroups.make("t", Limits(memory_bytes=1000, cpu=0.5), among=[cpu, memory])
    assert [folder.parent for folder in group.folders] == [cpu.folder / "steelyard", memory.folder]


def test_a_shared_group_of_version_2_hands_its_controllers_down(tmp_path: Path) -> None:
    slot = Slot(tmp_path, 2, frozenset({"memory", "cpu"}))
    cgroups.make("t", Limits(cpu=0.5), among=[slot])
    assert (tmp_path / "steelyard" / "cgroup.subtree_control").read_text() == "+cpu +memory"


@pytest.mark.integration
def test_the_last_group_takes_the_one_for_all_with_it() -> None:
    among = [slot for slot in cgroups.slots() if "cpu" in slot.controllers]
    first, second = (cgroups.make(token, Limits(cpu=1.0), among=among) for token in ("a1", "b1"))
    for folder in first.folders:
        assert cgroups.find(["a1"]) == [("a1", folder)]
        assert int((folder.parent / "cpu.shares").read_text()) < 1024
        cgroups.remove(folder)
        assert folder.parent.is_dir()
    for folder in second.folders:
        cgroups.remove(folder)
    assert cgroups.find(["a1", "b1"]) == []
