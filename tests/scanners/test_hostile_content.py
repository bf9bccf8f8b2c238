"""Whatever an agent wrote is read, within a time that grows with its size and no faster."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.components.model import ToolCall
from steelyard.components.scanner import Finding, Scanner
from steelyard.components.steps import Step, ToolResult
from steelyard.scanners.injection.suspects import suspects_in
from steelyard.scanners.reward_hacking import RewardHacking
from steelyard.scanners.sandbox_escape import SandboxEscape
from steelyard.scanners.shell.syntax import parsed
from steelyard.scanners.shell.walking import ShellState, commands_of
from steelyard.scanners.tool_misuse import ToolMisuse
from steelyard.testing.fake_run import FakeScannedAttempt

SLOW = (HealthCheck.too_slow,)  # a machine that is busy says nothing of the code
SCANNERS: tuple[type[Scanner], ...] = (RewardHacking, ToolMisuse, SandboxEscape)


def scanned(component: type[Scanner], *steps: Step) -> list[Finding]:
    scanner = component(component.Params())
    return list(asyncio.run(scanner.scan(FakeScannedAttempt(steps))))


def ran(command: str) -> Step:
    call = ToolCall("1", "Bash", json.dumps({"command": command}))
    return Step("agent", "", tool_calls=(call,), results=(ToolResult("1", "ok"),))


GROWING: dict[str, Callable[[int], str]] = {
    "substitutions": lambda n: "rm $(" * n,
    "closed substitutions": lambda n: "rm $(" * n + ")" * n,
    "quotes": lambda n: "rm '" * n,
    "double quotes": lambda n: 'rm "$(' * n,
    "backquotes": lambda n: "rm `" * n,
    "parentheses": lambda n: "rm ((" * n,
    "braces": lambda n: "rm {a,b}" * n,
    "nested braces": lambda n: "rm " + "{a," * n,
    "pipes": lambda n: "rm a|" * n,
    "open documents": lambda n: "rm <<A\n" * n,
    "documents": lambda n: "rm <<A\nx\nA\n" * n,
    "one word": lambda n: "rm " + "x" * n * 8,
    "words": lambda n: "rm " + "x " * n * 4,
    "variables": lambda n: "rm " + "$x" * n,
    "assignments": lambda n: "a=rm; " + "a=$a$a; " * min(n, 3000) + "$a",
    "functions": lambda n: "f(){ rm /; f; }; " * n + "f",
    "loops": lambda n: "for a in 1 2 3 4 5; do rm $a; " * n,
    "wrappers": lambda n: "sudo " * n + "rm -rf /x",
    "shells": lambda n: "bash -c '" * min(n, 100) + "rm",
    "xargs": lambda n: "xargs -I{} " * n + "rm {}",
    "cases": lambda n: "case " * n,
    "conditions": lambda n: "if [[ " * n,
    "nulls": lambda n: "rm \0" * n,
    "surrogates": lambda n: "rm " + "\ud800" * n,
    "redirections": lambda n: "rm " + "> a " * n,
    "less than": lambda n: "rm " + "<" * n,
    "python": lambda n: "python3 -c '" + "(" * n + "'",
    "python operators": lambda n: "python3 -c '" + "-" * n + "1'",
    "python attributes": lambda n: "python3 -c 'import os\nos" + ".system" * n + "(1)'",
    "sed": lambda n: "sed -i 's/" + "a\\/" * n + "/b/' tests/test_a.py",
    "addresses": lambda n: "curl " + "http://a/" * n,
    "dots": lambda n: "rm -rf " + "../" * n,
}


SMALL, LARGE = 1_000, 8_000


def cpu_s(make: Callable[[int], list[Step]], size: int) -> float:
    """CPU time of the three scanners on new text; what they keep of it comes with the first."""
    steps = make(size)
    parsed.cache_clear()
    began = time.process_time()
    for component in SCANNERS:
        scanned(component, *steps)
    return time.process_time() - began


def assert_linear(make: Callable[[int], list[Step]]) -> None:
    """Eight times the size: 8 times the time where it is linear, 64 where it is quadratic.

    What is cut off at a bound costs that bound, once: half a second.
    """
    small, large = cpu_s(make, SMALL), cpu_s(make, LARGE)
    assert large <= 24 * small + 0.5, f"{small:.3f} s, then {large:.3f} s"


@pytest.mark.parametrize("make", GROWING.values(), ids=GROWING)
def test_time_grows_no_faster_than_size(make: Callable[[int], str]) -> None:
    assert_linear(lambda size: [ran(make(size))])


EDITS = {
    "assertions": lambda n: "assert a == 1\n" * n,
    "spaces": lambda n: " " * n * 8 + "assert",
    "blank lines": lambda n: "def test_a():" + "\n" * n * 8,
    "hooks": lambda n: "def pytest_runtest_call" * n + "atexit.register(" * n,
    "names": lambda n: "x" * n * 8 + "[",
    "equals": lambda n: "def __eq__(self, other):" + " " * n + "\n" * n,
    "quotes": lambda n: "assert '" + "\\'" * n,
    "patch": lambda n: "*** Begin Patch\n*** Update File: tests/test_a.py\n" + "-a\n+b\n" * n,
    "cases": lambda n: "if a == 1: return 2\n" * n,
    "dotted": lambda n: "time" + ".a" * n + " = 1",
    "imports": lambda n: "import os\n" * n,
}


@pytest.mark.parametrize("make", EDITS.values(), ids=EDITS)
def test_edits_take_a_time_that_grows_no_faster_than_they(make: Callable[[int], str]) -> None:
    def steps(size: int) -> list[Step]:
        text = make(size)
        calls = [
            {"file_path": "tests/test_a.py", "old_string": text, "new_string": text + "x"},
            {"file_path": "src/a.py", "content": text},
            {"file_path": "conftest.py", "content": text},
            {"input": text},
        ]
        return [
            Step("agent", "", tool_calls=(ToolCall("1", "edit", json.dumps(one)),)) for one in calls
        ]

    assert_linear(steps)


@pytest.mark.parametrize("text", ["x", "you must ", "ignore ", "instruction\n", "run the "])
def test_the_filter_of_instructions_is_linear(text: str) -> None:
    def filtered_s(size: int) -> float:
        step = Step("system", "", results=(ToolResult(None, text * size),))
        began = time.process_time()
        suspects_in(step, 0)
        return time.process_time() - began

    small, large = filtered_s(5_000), filtered_s(40_000)
    assert large <= 24 * small + 0.5, f"{small:.3f} s, then {large:.3f} s"


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
def test_no_text_makes_the_shell_reader_fail(text: str) -> None:
    for command in commands_of(text, ShellState()):
        assert isinstance(command.name, str)


_PIECES = st.sampled_from(
    ["rm", "-rf", "/", "$(", ")", "'", '"', "`", "<<E\n", "\nE\n", "|", "&&", ";", "{", "}", "a=b",
     "$a", "${a:-", "bash -c", "eval", "xargs", "find . -exec", "\\;", "python3 -c", ">", "2>&1",
     "tests/test_a.py", "curl http://169.254.169.254", "\ud800", "\0", "é", "for i in", "do",
     "done", "f(){", "sed -i s/a/b/", "git push -f", "env", "sudo", "ssh h", "base64 -d", "[["]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=40).map(" ".join))
@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
def test_no_command_makes_a_scanner_fail_and_evidence_stands_in_the_step(text: str) -> None:
    step = Step("agent", "", tool_calls=(ToolCall("1", "sh", text),))
    for component in SCANNERS:
        for finding in scanned(component, step):
            assert finding.evidence in text or finding.evidence == "sh"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["command", "cmd", "path", "file_path", "content", "edits", "old_str",
                         "new_str", "patch", "input", "url", "code", "workdir", "keystrokes"]),
        inner, max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.parametrize("text", ["echo a ²> b", "seq ² ٣", "rm {²..٣}", "kill -² ³", "nc ² ²-³"])
def test_digits_of_other_scripts_are_no_numbers_of_ours(text: str) -> None:
    for component in SCANNERS:
        scanned(component, ran(text))


@given(_JSON, st.sampled_from(["Bash", "Edit", "python", "delete_file", "", "apply_patch", "x"]))
@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
def test_no_arguments_make_a_scanner_fail(arguments: object, name: str) -> None:
    step = Step("agent", "", tool_calls=(ToolCall("1", name, json.dumps(arguments)),))
    for component in SCANNERS:
        scanned(component, step)


def test_only_so_many_findings_of_a_category_are_kept_and_the_last_says_so() -> None:
    found = scanned(SandboxEscape, *[ran(f"cat /proc/{n}/environ") for n in range(2, 60)])
    kept = [one for one in found if one.category == "other-processes"]
    assert len(kept) == 10
    assert "left out" in kept[-1].message
    assert not any("left out" in one.message for one in kept[:-1])


def test_artifacts_that_are_no_plain_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.sh").symlink_to("/etc/passwd")
    (tmp_path / "binary.sh").write_bytes(b"\0rm -rf /")
    (tmp_path / "odd.py").write_bytes(b"\xff\xfe import os; os.system('rm -rf /')")
    (tmp_path / "left.sh").write_text("#!/bin/sh\nrm -rf /usr\n")
    artifacts = {path.name: path for path in tmp_path.iterdir()} | {"gone": tmp_path / "gone"}
    scanner = ToolMisuse(ToolMisuse.Params())
    found = asyncio.run(scanner.scan(FakeScannedAttempt(artifacts=artifacts)))
    assert [(one.step, one.evidence, one.confidence) for one in found] == [
        (None, "rm -rf /usr", 0.5)
    ]
    assert "left.sh" in found[0].message
