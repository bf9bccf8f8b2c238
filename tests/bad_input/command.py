"""The real command in a process of its own, in a small project, and what it must say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from steelyard.__main__ import main

PACK = """\
schema: pack/v1
slug: tiny
version: 1
prompt: "{{ q }}"
cases: cases.jsonl
reference: "{{ a }}"
scoring:
  validators:
    - {type: exact, expected: "{{ a }}"}
  threshold: 1.0
"""
CASES = [{"id": f"c{number}", "q": f"what is {number}?", "a": str(number)} for number in range(5)]
HEAD = """\
defaults:
  benchmark: {id: ./p}
  harness: {id: oracle}
  model: {id: none}
requests:
"""
"""A request that follows it is on line 6."""


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def only(self) -> dict[str, Any]:
        """The result of the only request."""
        (request,) = self.json["requests"]
        assert isinstance(request, dict)
        return request


def make_project(folder: Path) -> Path:
    """Make a project with the pack `./p`, and nothing else."""
    folder.mkdir(exist_ok=True)
    (folder / ".git").mkdir()
    write_pack(folder / "p")
    return folder


def write_pack(
    folder: Path, pack: str = PACK, cases: Sequence[Any] | bytes | None = tuple(CASES)
) -> None:
    folder.mkdir()
    (folder / "pack.yaml").write_text(pack)
    if isinstance(cases, bytes):
        (folder / "cases.jsonl").write_bytes(cases)
    elif cases is not None:
        lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in cases]
        (folder / "cases.jsonl").write_text("".join(lines))


def steelyard(
    project: Path, *arguments: str, env: Mapping[str, str] | None = None, status: int | None = None
) -> Ran:
    """Run the command; it must never show a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", *arguments],
        cwd=project,
        env=_variables(project, env),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    ran = Ran(done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in ran.err + ran.out, ran.err
    assert "error: unexpected" not in ran.err, ran.err
    if status is not None:
        assert ran.status == status, ran.err + ran.out
    return ran


def steelyard_here(project: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Ran:
    """Run the command in this process, which saves its start."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        for name, value in _variables(project, env).items():
            patch.setenv(name, value)
        with redirect_stdout(out), redirect_stderr(err):
            status = main(list(arguments))
    return Ran(status, out.getvalue(), err.getvalue())


def _variables(project: Path, more: Mapping[str, str] | None) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(project),
        "XDG_CONFIG_HOME": str(project / "xdg"),
        "LANG": "C.UTF-8",
        **(more or {}),
    }


def as_people_see(problems: Sequence[Mapping[str, Any]]) -> str:
    """Write the problems of a JSON document as the command does for people."""
    lines = []
    for problem in problems:
        place = ":".join(str(problem[k]) for k in ("file", "line", "column") if problem[k])
        place = " ".join(part for part in (place, problem["field"]) if part)
        lines.append(f"error: {place}: {problem['message']}" if place else problem["message"])
        if problem["remedy"]:
            lines.append(f"       {problem['remedy']}")
    if len(problems) > 1:
        lines.append(f"{len(problems)} problems; nothing was created")
    return "\n".join(lines) + "\n"


def assert_refused(
    project: Path,
    *arguments: str,
    said: Sequence[str],
    env: Mapping[str, str] | None = None,
    can_be_dry: bool = True,
) -> None:
    """Exit 2: for people and as JSON, run and dry run say the same, and nothing is created.

    Args:
        project: where it runs.
        arguments: of the command.
        said: what must stand in the text: each problem's place, message and remedy.
        env: variables.
        can_be_dry: the command has a `--dry-run`.
    """
    before = sorted(project.rglob("*"))
    ran = steelyard(project, *arguments, env=env, status=2)
    for text in said:
        assert text in ran.err
    assert ran.out == ""
    dry = ("--dry-run",) if can_be_dry else ()
    as_json = steelyard_here(project, *arguments, "--json", *dry, env=env)
    assert (as_json.status, as_json.err) == (2, "")
    error = as_json.json["error"]
    assert error["exit_status"] == 2
    assert as_people_see(error["problems"]) == ran.err
    for problem in error["problems"]:
        assert problem["file"] or problem["field"], f"without a place: {problem}"
        assert problem["remedy"] or "well-formed" in problem["message"], problem
    assert sorted(project.rglob("*")) == before
