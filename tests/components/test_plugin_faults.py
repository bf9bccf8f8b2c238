"""A broken plug-in: exit status 2 where it is used, a warning where it is only installed.

It never shows a traceback, and never harms a command that does not use it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

GOOD = """
from steelyard.components.harness import Harness, HarnessResult, HarnessTraits

class Mine(Harness):
    api = 1
    id = "mine"
    version = "1"
    traits = HarnessTraits(calls_model=False)

    async def run(self, context):
        return HarnessResult("x")
"""
PACK = """schema: pack/v1
slug: small
version: 1
prompt: "{{ q }}"
cases: cases.jsonl
scoring:
  validators: [{type: exact, expected: '{{ answer }}'}]
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Machine:
    """A site folder of packages beside the installed ones, and an empty working folder."""

    root: Path

    def install(
        self, name: str, entries: Mapping[str, str], module: str = GOOD, *, raw: str | None = None
    ) -> None:
        """Lay out an installed package, as an installer would."""
        info = self.root / "site" / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "".join(f"{key} = {value}\n" for key, value in entries.items())
        text = f"[steelyard.harnesses]\n{lines}" if raw is None else raw
        (info / "entry_points.txt").write_text(text)
        (self.root / "site" / f"{name}_module.py").write_text(module)

    def steelyard(self, *arguments: str) -> Ended:
        """Run the product; no traceback may be seen."""
        done = subprocess.run(
            [sys.executable, "-m", "steelyard", *arguments],
            env={
                **os.environ,
                "PYTHONPATH": str(self.root / "site"),
                "XDG_CONFIG_HOME": str(self.root / "xdg"),
            },
            cwd=self.root / "work",
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return Ended(done.returncode, done.stdout, done.stderr)

    def use(self, harness: str, *options: str) -> Ended:
        """Run a small pack with a harness."""
        return self.steelyard("run", "./pack", harness, "none", *options)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for folder in ("site", "work", "work/pack"):
        (tmp_path / folder).mkdir()
    (tmp_path / "work/pack/pack.yaml").write_text(PACK)
    (tmp_path / "work/pack/cases.jsonl").write_text('{"id": "a", "q": "x?", "answer": "x"}\n')
    return Machine(tmp_path)


def _without(line: str) -> str:
    return "\n".join(one for one in GOOD.splitlines() if line not in one)


MARK = "import pathlib; pathlib.Path(__file__).with_name('imported').touch()\n"
"""Leaves a file behind when it is imported."""

BROKEN = {
    "raises": ("raise RuntimeError('no licence')", "cannot be imported: RuntimeError: no licence"),
    "raises what is no Exception": (
        "import asyncio\nraise asyncio.CancelledError('odd')",
        "cannot be imported: CancelledError: odd",
    ),
    "exits": ("import sys\nsys.exit(0)", "cannot be imported: SystemExit: 0"),
    "is no Python": ("class Mine(", "cannot be imported: SyntaxError"),
    "imports what is missing": ("import no_such_thing", "No module named 'no_such_thing'"),
    "has no such class": ("class Mime: pass", "x_module has no class Mine"),
    "is lazy and fails": (
        "def __getattr__(name):\n    raise OSError(f'no {name} today')",
        "cannot be imported: OSError: no Mine today",
    ),
    "is no class": ("Mine = 3", "is not a harness"),
    "is no subclass": ("class Mine:\n    api = 1", "is not a harness"),
    "is an environment": (
        "from steelyard.environments.host_process import HostProcess as Mine",
        "is not a harness",
    ),
    "leaves out a method": (GOOD.replace("async def run", "async def walk"), "leaves out run"),
    "declares no api": (_without("api ="), "declares no api"),
    "declares api 0": (GOOD.replace("api = 1", "api = 0"), "declares api = 0"),
    "declares api 2": (GOOD.replace("api = 1", "api = 2"), "declares api = 2"),
    "declares api '1'": (GOOD.replace("api = 1", "api = '1'"), "declares api = '1'"),
    "declares api 1.0": (GOOD.replace("api = 1", "api = 1.0"), "declares api = 1.0"),
    "calls itself something else": (
        GOOD.replace('"mine"', '"chat"'),
        "calls itself 'chat', and is installed as 'mine'",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_plug_in_that_is_broken_is_refused_where_it_is_used(machine: Machine, what: str) -> None:
    module, said = BROKEN[what]
    machine.install("x", {"mine": "x_module:Mine"}, module)
    used = machine.use("mine", "--dry-run")
    assert (used.status, used.out) == (2, ""), used
    assert said in used.err
    assert "'mine'" in used.err


def test_broken_plug_ins_harm_no_command_that_does_not_use_them(machine: Machine) -> None:
    for number, (module, _) in enumerate(BROKEN.values()):
        name = f"x{number}"
        machine.install(name, {name: f"{name}_module:Mine"}, MARK + module)
    assert machine.use("nop").status == 0
    assert machine.steelyard("list").status == 0
    assert machine.steelyard("config", "check").status == 0
    assert not (machine.root / "site" / "imported").exists()


def test_an_entry_point_to_a_module_that_is_not_there_is_marked(machine: Machine) -> None:
    machine.install("x", {"mine": "gone.sub:Mine"})
    listed = machine.steelyard("list", "harnesses")
    assert listed.status == 0
    assert "warning: the harness 'mine' of x is unusable: there is no module gone" in listed.err
    used = machine.use("mine")
    assert used.status == 2
    assert "No module named 'gone'" in used.err


@pytest.mark.parametrize("target", ["x_module", "x_module:", ":Mine", "x module:Mine"])
def test_an_entry_point_that_leads_to_no_class_is_refused(machine: Machine, target: str) -> None:
    machine.install("x", {"mine": target})
    assert "not of the form package.module:Class" in machine.steelyard("list").err
    used = machine.use("mine")
    assert used.status == 2
    assert "not of the form package.module:Class" in used.err


def test_an_entry_point_may_name_an_extra_and_a_class_in_a_class(machine: Machine) -> None:
    module = GOOD + "\nclass Outer:\n    Inner = Mine\n"
    machine.install("x", {"mine": "x_module:Outer.Inner [more]"}, module)
    used = machine.use("mine", "--json")
    assert used.status == 0, used.err


@pytest.mark.parametrize("name", ["nop", "openai_chat"])
def test_a_plug_in_that_shadows_a_built_in_is_refused_and_the_built_in_still_works(
    machine: Machine, name: str
) -> None:
    machine.install("x", {name: "x_module:Mine"}, MARK + GOOD)
    listed = machine.steelyard("list", "harnesses")
    assert listed.status == 0
    assert f"warning: the harness {name!r} of x is refused: the id is built in" in listed.err
    used = machine.use("nop", "--json")
    assert used.status == 0, used.err
    assert not (machine.root / "site" / "imported").exists()


def test_whoever_uses_a_shadowed_built_in_is_told(machine: Machine) -> None:
    machine.install("x", {"nop": "x_module:Mine"})
    assert "the harness 'nop' of x is refused: the id is built in" in machine.use("nop").err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NOP", "it differs only in case or form from 'nop', which is built in"),
        ("ｎｏｐ", "'ｎｏｐ' cannot be an id; 'nop' would be one"),
        ("a b", "'a b' cannot be an id; 'a-b' would be one"),
        ("./mine.py", "'./mine.py' cannot be an id; 'mine.py' would be one"),
        ("con", "'con' cannot be an id"),
    ],
)
def test_an_id_that_clashes_by_case_or_form_is_refused(
    machine: Machine, name: str, said: str
) -> None:
    machine.install("x", {name: "x_module:Mine"})
    assert f"of x is refused: {said}" in machine.steelyard("list", "harnesses").err
    assert machine.use(name, "--dry-run").status == 2
    assert machine.use("nop", "--dry-run").status == 0


def test_two_plug_ins_whose_ids_differ_only_in_case_are_both_refused(machine: Machine) -> None:
    machine.install("x", {"mine": "x_module:Mine"})
    machine.install("y", {"Mine": "y_module:Mine"})
    listed = machine.steelyard("list", "harnesses").err
    assert "the harness 'mine' of x is refused: also declared by y (as 'Mine')" in listed
    assert "the harness 'Mine' of y is refused: also declared by x (as 'mine')" in listed
    for name, other in (("mine", "y"), ("Mine", "x")):
        used = machine.use(name)
        assert used.status == 2
        assert f"also declared by {other}" in used.err


def test_no_package_may_take_the_name_auto(machine: Machine) -> None:
    raw = "[steelyard.environments]\nauto = x_module:Mine\n"
    machine.install("x", {}, raw=raw)
    said = "the environment 'auto' of x is refused: the id is the rule that picks an environment"
    assert said in machine.steelyard("list", "environments").err
    assert machine.use("nop", "--dry-run").status == 0


def test_a_package_whose_declarations_are_malformed_is_named_by_list(machine: Machine) -> None:
    """It stops pydantic too, which reads every package's: `list` must work to say whose fault."""
    machine.install("x", {}, raw="[steelyard.harnesses]\nmine\n")
    machine.install("y", {"mine": "y_module:Mine"})
    listed = machine.steelyard("list", "harnesses", "--json")
    assert listed.status == 0
    assert any(one["id"] == "mine" for one in json.loads(listed.out)["components"])
    assert "warning: what the package x declares cannot be read" in listed.err


def test_a_plug_in_that_prints_while_it_is_imported_leaves_json_whole(machine: Machine) -> None:
    machine.install("x", {"mine": "x_module:Mine"}, "print('welcome to mine')\n" + GOOD)
    used = machine.use("mine", "--json")
    assert used.status == 0, used.err
    for line in used.out.splitlines():
        assert "welcome" not in line
    assert "welcome to mine" in used.err
