"""What a machine lacks is named with the remedy for that machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.environments import bubblewrap
from steelyard.environments.auto import NoSafeEnvironment, resolve_auto
from steelyard.environments.bubblewrap import Layout, options, refusal_of_program
from steelyard.environments.docker import finding

NUMBERS = {
    "/proc/sys/kernel/unprivileged_userns_clone": "sysctl -w kernel.unprivileged_userns_clone=1",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "AppArmor",
}


def test_without_bubblewrap_each_systems_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda _name: None)
    told = bubblewrap.find_tools.__wrapped__()
    assert isinstance(told, str)
    for command in ("apt-get install", "dnf install", "pacman -S"):
        assert command in told


def test_an_old_bubblewrap_is_named_as_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: f"/usr/bin/{name}")
    shown = subprocess.CompletedProcess([], 0, "--unshare-all --json-status-fd", "")
    monkeypatch.setattr(bubblewrap.subprocess, "run", lambda *_a, **_k: shown)
    told = bubblewrap.find_tools.__wrapped__()
    assert isinstance(told, str)
    assert "too old" in told


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.seccomp, "supports", lambda: False)
    assert "x86-64 and arm64" in str(bubblewrap.find_tools.__wrapped__())


@pytest.mark.parametrize(("file", "value"), [(file, "01"["apparmor" in file]) for file in NUMBERS])
def test_a_closed_door_is_named_with_its_key(
    monkeypatch: pytest.MonkeyPatch, file: str, value: str
) -> None:
    monkeypatch.setattr(bubblewrap, "_number", lambda path: int(value) if path == file else None)
    assert NUMBERS[file] in bubblewrap._remedy()


def test_in_a_container_the_engines_options_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_number", lambda _path: None)
    monkeypatch.setattr(Path, "exists", lambda self: str(self) == "/.dockerenv")
    assert "--security-opt seccomp=unconfined" in bubblewrap._remedy()


def test_a_refusal_has_the_sandboxes_remedy_first() -> None:
    text = str(NoSafeEnvironment("user namespaces are off; turn them on", "no engine; start one"))
    assert "nothing here can hold it: user namespaces are off; no engine" in text
    assert "1. turn them on" in text
    assert "2. a container engine: start one" in text
    assert "host_process" in text


def forget() -> None:
    """What was found out about this machine is kept; a test that pretends must not be."""
    bubblewrap.find_tools.cache_clear()
    bubblewrap.unavailable.cache_clear()


def test_on_macos_auto_is_the_container_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    monkeypatch.setattr(sys, "platform", "darwin")
    try:
        assert "on macOS and Windows use a container engine" in str(bubblewrap.unavailable())
        monkeypatch.setattr(finding, "unavailable", lambda: None)
        assert resolve_auto(runs_model_code=True) == "docker"
        monkeypatch.setattr(finding, "unavailable", lambda: "no engine; start one")
        with pytest.raises(NoSafeEnvironment, match="needs Linux"):
            resolve_auto(runs_model_code=True)
    finally:
        forget()


@pytest.mark.parametrize(
    ("stderr", "found"),
    [
        (b"bwrap: execvp nope: No such file or directory\n", (127, "No such file or directory")),
        (b"bwrap: execvp ./x: Permission denied\n", (126, "Permission denied")),
        (b"bwrap: Can't chdir to /nowhere: No such file\n", (127, "no such folder")),
        (b"bwrap: No permissions to create new namespace\n", None),
        (b"", None),
    ],
)
def test_bubblewraps_last_words_tell_program_from_sandbox(
    stderr: bytes, found: tuple[int, str] | None
) -> None:
    assert refusal_of_program(stderr) == found


@pytest.mark.parametrize(("name", "value"), [("A", "x\0--bind\0/\0/"), ("B\0--share-net", "x")])
def test_a_nul_byte_cannot_become_an_option(tmp_path: Path, name: str, value: str) -> None:
    layout = Layout(tmp_path, tmp_path, tmp_path, Path("/usr"), 1, False)
    with pytest.raises(ValueError, match="NUL byte"):
        options(layout, {name: value}, chdir="/workspace", seccomp_fd=5, status_fd=3, block_fd=4)
