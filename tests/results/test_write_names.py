"""No write below a run directory goes past `results/files.py`, and none of its points is unused."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import steelyard
from steelyard.results.files import WritePoint

SRC = Path(steelyard.__file__).parent

# Places that write elsewhere than below a run directory, each with the reason.
ALLOWED = {
    "results/files.py": "the place for it",
    "results/artifacts.py": "copies whole trees within `collecting`, which tells of them",
    "results/retention.py": "removes whole runs that nobody holds, when a person asks",
    "components/installed_agents.py": "programs of agents, below the data folder",
    "components/private_folders.py": "sockets in folders of their own, outside of runs",
    "doctor": "a file without a name, synced to see how long that takes",
    "testing": "fakes and fault plans of tests",
    "environments": "working folders of sessions, in temporary folders",
    "benchmarks": "task data and scorers' working folders",
    "harnesses": "working folders of sessions",
    "models/machine_limits.py": "one small file that processes of this machine share",
    "models/mock": "its own state, and its sockets",
    "config": "configuration files and projects, asked for by name",
    "cli": "files that a command was asked to write",
    "evalset/starter.py": "a manifest and a project, asked for by name",
    "fix": "its ledger, store and trial trees: tests/fix kills at their own steps",
}

OS_CALLS = {
    "write", "writev", "pwrite", "fsync", "fdatasync", "replace", "rename", "renames", "remove",
    "unlink", "mkdir", "makedirs", "rmdir", "truncate", "ftruncate", "link", "symlink", "open",
}  # fmt: skip
PATH_CALLS = {
    "write_text", "write_bytes", "mkdir", "touch", "rename", "unlink", "rmdir", "symlink_to",
    "hardlink_to",
}  # fmt: skip
WRITING_MODES = set("wax+")


def writes_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id == "open" and _writes(node, 1):
            yield node.lineno, "open"
        if not isinstance(function, ast.Attribute):
            continue
        name = function.attr
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if owner == "os" and name in OS_CALLS:
            if name != "open" or "O_W" in ast.unparse(node) or "O_RDWR" in ast.unparse(node):
                yield node.lineno, f"os.{name}"
        elif owner == "shutil" and name not in {"which", "disk_usage", "get_terminal_size"}:
            yield node.lineno, f"shutil.{name}"
        elif name in PATH_CALLS and owner != "os":
            yield node.lineno, f".{name}"
        elif name == "replace" and len(node.args) == 1 and not node.keywords:
            # Path.replace takes one path; str.replace two texts, datetime.replace keywords.
            yield node.lineno, ".replace"
        elif name == "open" and owner not in {"os", "webbrowser"} and _writes(node, 0):
            yield node.lineno, ".open"


def _writes(node: ast.Call, position: int) -> bool:
    mode = next((k.value for k in node.keywords if k.arg == "mode"), None)
    if mode is None and len(node.args) > position:
        mode = node.args[position]
    return (
        isinstance(mode, ast.Constant)
        and isinstance(mode.value, str)
        and bool(WRITING_MODES & set(mode.value))
    )


def is_allowed(relative: str) -> bool:
    return any(relative == place or relative.startswith(f"{place}/") for place in ALLOWED)


def test_nobody_else_writes() -> None:
    found = [
        f"{path.relative_to(SRC)}:{line}: {what}"
        for path in sorted(SRC.rglob("*.py"))
        if not is_allowed(path.relative_to(SRC).as_posix())
        for line, what in writes_of(ast.parse(path.read_text()))
    ]
    assert found == [], "write through results/files.py, or name the place and why in ALLOWED"


def test_every_point_is_used_by_the_source() -> None:
    used = {
        node.attr
        for path in SRC.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "WritePoint"
    }
    assert used == {point.name for point in WritePoint}


@pytest.mark.parametrize(
    "code",
    [
        "os.write(fd, b'')",
        "os.open(p, os.O_WRONLY)",
        "open(p, 'w')",
        "open(p, mode='ab')",
        "p.open('r+b')",
        "p.write_text('x')",
        "p.replace(q)",
        "shutil.rmtree(p)",
        "(a / b).mkdir()",
    ],
)
def test_a_write_is_seen(code: str) -> None:
    assert list(writes_of(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ["open(p)", "p.open('rb')", "s.replace('a', 'b')", "os.open(p, os.O_RDONLY)"]
)
def test_a_read_is_not_taken_for_a_write(code: str) -> None:
    assert not list(writes_of(ast.parse(code)))
