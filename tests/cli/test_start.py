"""The command starts cheaply: nothing heavy is imported for what needs none of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.cli.main import COMMANDS
from steelyard.components.registry import BUILTINS

HEAVY = (
    "pydantic", "pydantic_core", "rich", "ruamel", "openai", "anthropic", "httpx2", "httpx",
    "scipy", "numpy", "jinja2", "orjson", "asyncio", "genai_prices", "psutil", "temporalio",
)  # fmt: skip

PROBE = """
import atexit, json, sys
atexit.register(lambda: sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)) + "\\n"))
from steelyard.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def imported(*arguments: str, cwd: Path) -> tuple[int, str, set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, cwd=cwd,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


BUILT_IN_MODULES = {
    entry.target.partition(":")[0] for kind in BUILTINS.values() for entry in kind.values()
}


@pytest.mark.integration
@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_import_nothing_heavy(argument: str, tmp_path: Path) -> None:
    status, out, modules = imported(argument, cwd=tmp_path)
    assert status == 0
    assert "steelyard" in out.lower()
    assert [name for name in HEAVY if name in modules] == []
    assert BUILT_IN_MODULES & modules == set()
    assert {row.target.partition(":")[0] for row in COMMANDS.values()} & modules == set()


@pytest.mark.integration
def test_the_version_is_answered_before_the_command_line_is_imported(tmp_path: Path) -> None:
    _, _, modules = imported("--version", cwd=tmp_path)
    assert "click" not in modules
    assert "steelyard.cli" not in modules


@pytest.mark.integration
def test_list_imports_no_component_and_no_schema(tmp_path: Path) -> None:
    status, out, modules = imported("list", "benchmarks", cwd=tmp_path)
    assert (status, "humaneval" in out) == (0, True)
    assert BUILT_IN_MODULES & modules == set()
    assert [name for name in ("pydantic", "rich", "ruamel", "scipy") if name in modules] == []


@pytest.mark.integration
def test_a_dry_run_imports_no_sdk_and_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "o.yaml").write_text(
        "defaults: {model: {id: none}, environment: {id: host_process}}\n"
        "requests:\n"
        "  - {name: a, benchmark: {id: humaneval}, harness: {id: nop}}\n"
        "  - {name: b, benchmark: {id: humaneval}, harness: {id: oracle}}\n"
    )
    status, out, modules = imported("launch", "o.yaml", "--dry-run", cwd=tmp_path)
    assert status == 0
    assert "2 requests" in out
    sdks = ("openai", "anthropic", "rich", "scipy", "numpy", "temporalio", "pyarrow")
    assert [name for name in (*sdks, "asyncio", "ssl") if name in modules] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.yaml"]


@pytest.mark.integration
def test_a_closed_pipe_ends_the_output_quietly(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    for arguments in (["list", "benchmarks"], ["config", "docs"], ["--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "steelyard", *arguments], stdout=write,
            stderr=subprocess.PIPE, cwd=tmp_path, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
    os.close(write)


@pytest.mark.integration
@pytest.mark.parametrize(("call", "status"), [("settle()", 0), ("None", 120)])
def test_text_left_for_a_reader_who_has_gone_changes_no_exit_status(call: str, status: int) -> None:
    """Without `settle` the interpreter fails while it ends: the second row shows the fault."""
    read, write = os.pipe()
    os.close(read)
    code = f"import sys; from steelyard.cli.streams import settle; sys.stdout.write('left'); {call}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=write,
        stderr=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        check=False,
    )
    os.close(write)
    assert done.returncode == status
