"""Scanning trajectories by rules: megabytes a second of one core, and what only reading takes."""

from __future__ import annotations

import asyncio
import hashlib
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from benchmarks.measures import Figure

SEED = 6
BOUND_MB_S = 20.0
TOGETHER_MB_S = 10.0
"""Of the three, one after the other: each reads the steps anew, and keeps what it parsed."""
TRAJECTORIES = 60
STEPS = 50
"""Of each trajectory: calls, each with what it gave back."""
OUTPUT_CHARS = (200, 20_000)
"""Of a result; most are of some thousand characters, as test logs and listings are."""

COMMANDS = (
    "ls -la src/{name} && git status --short",
    "cd /app && sed -n '{n},{m}p' src/{name}/core.py",
    "grep -rn 'def {name}' src tests | head -{n}",
    "cd /testbed && python -m pytest tests/test_{name}.py -q 2>&1 | tail -{n}",
    "cat src/{name}/handlers.py",
    "python - <<'EOF'\nimport json\nfrom src import {name}\n\nfor case in range({n}):\n"
    "    print(json.dumps({name}.run(case), indent=2))\nEOF",
    "git diff HEAD~{n} -- src/{name} | head -100",
    "find . -name '*{name}*' -not -path './node_modules/*' | xargs grep -ln deprecated",
    'for f in src/{name}/*.py; do wc -l "$f"; done | sort -n | tail -{n}',
    "pip install -e '.[dev]' -q && make lint 2>&1 | grep -v warning | head -{n}",
    "rm -rf build/{name} && cmake -S . -B build/{name} && cmake --build build/{name} -j{n}",
    "curl -s http://localhost:{m}/api/{name} | jq '.items[] | .id' | sort -u",
)
LINE = "tests/test_{name}.py::test_case_{n} PASSED in {m} ms; checked {name} against the table"
CODE = (
    "def {name}_{n}(value):\n    result = value * {n} + {m}\n    return result if value else None\n"
)


def trajectory(number: int) -> dict[str, Any]:
    """Make an ATIF document as a coding agent leaves one: few commands, long outputs."""
    chance = random.Random(SEED * 1000 + number)
    steps: list[dict[str, Any]] = [{"source": "user", "message": "Mend the failing test. " * 40}]
    for place in range(STEPS):
        name = "".join(chance.choices("abcdefghij", k=6))
        fields = {"name": name, "n": chance.randint(2, 90), "m": chance.randint(100, 9000)}
        call_id = f"call_{number}_{place}"
        if place % 5 == 4:
            code = "\n".join(
                CODE.format(**{**fields, "n": n}) for n in range(chance.randint(5, 40))
            )
            tool, arguments = "Write", {"file_path": f"/app/src/{name}.py", "content": code}
            output = "File created successfully."
        else:
            command = COMMANDS[chance.randrange(len(COMMANDS))].format(**fields)
            tool, arguments = "Bash", {"command": command, "description": "the next step"}
            size = int(OUTPUT_CHARS[0] * (OUTPUT_CHARS[1] / OUTPUT_CHARS[0]) ** chance.random())
            line = LINE.format(**fields)
            output = "\n".join(f"{line} #{n}" for n in range(size // len(line) + 1))
        steps.append(
            {
                "source": "agent",
                "message": f"I look at {name} next, since the failure names it.",
                "tool_calls": [
                    {"tool_call_id": call_id, "function_name": tool, "arguments": arguments}
                ],
                "observation": {"results": [{"source_call_id": call_id, "content": output}]},
            }
        )
    return {"schema_version": "ATIF-v1.7", "steps": steps}


class _Attempt:
    """A `ScannedAttempt` whose trajectory lies on the disk, as a run leaves it."""

    artifacts: Mapping[str, Path] = {}

    def __init__(self, root: Path, trajectory: Mapping[str, Any]) -> None:
        self._root, self._trajectory = root, trajectory

    def steps(self) -> Iterator[Any]:
        from steelyard.results.trajectory_reader import read_steps

        return read_steps(self._root, self._trajectory)


def _written(root: Path, count: int) -> tuple[list[_Attempt], float]:
    """Write trajectories; give them with their size in megabytes (of 10^6 bytes)."""
    attempts, size = [], 0
    for number in range(count):
        data = orjson.dumps(trajectory(number))
        name = f"{number}.json"
        (root / name).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        attempts.append(_Attempt(root, {"path": name, "sha256": digest}))
        size += len(data)
    return attempts, size / 1e6


def _mb_s(size_mb: float, work: Callable[[], object]) -> float:
    """Give the best of three: megabytes a second of CPU."""
    best = 0.0
    for _ in range(3):
        began = time.process_time()
        work()
        best = max(best, size_mb / (time.process_time() - began))
    return best


def measure(*, scale: float) -> Iterator[Figure]:
    """Scan with each scanner alone, then with the three one after the other."""
    from steelyard.components.registry import Kind, find
    from steelyard.scanners import python_code, reading
    from steelyard.scanners.shell import syntax

    kept: tuple[Any, ...] = (
        syntax.parsed, python_code.tree_of, reading._walked, reading._words_of, reading._pieces,
    )  # fmt: skip

    ids = ("reward-hacking", "tool-misuse", "sandbox-escape-attempt")
    with tempfile.TemporaryDirectory(prefix="steelyard-bench-") as folder:
        root = Path(folder)
        attempts, size_mb = _written(root, max(2, int(TRAJECTORIES * scale)))
        files = sorted(root.glob("*.json"))

        def decode() -> None:
            for file in files:
                orjson.loads(file.read_bytes())

        def read() -> None:
            for attempt in attempts:
                for _ in attempt.steps():
                    pass

        def scan(*components: Any) -> None:
            for one in kept:
                one.cache_clear()  # each command is new to the first scanner

            async def all_of_them() -> None:
                for attempt in attempts:
                    for component in components:
                        await component(component.Params()).scan(attempt)

            asyncio.run(all_of_them())

        floor_mb_s = _mb_s(size_mb, decode)
        steps_mb_s = _mb_s(size_mb, read)
        found = [find(Kind.SCANNER, name).component for name in ids]
        note = (
            f"{size_mb:.0f} MB; floor: reading and decoding the files; steps alone {steps_mb_s:.0f}"
        )
        for name, component in zip(ids, found, strict=True):
            yield Figure(
                f"{name}: trajectory a second of a core, its steps read from disk",
                _mb_s(size_mb, lambda component=component: scan(component)),  # type: ignore[misc]
                "MB/s", BOUND_MB_S, "at least", floor_mb_s, note,
            )  # fmt: skip
        yield Figure(
            "the three rule scanners one after the other, each reading the steps anew",
            _mb_s(size_mb, lambda: scan(*found)),
            "MB/s",
            TOGETHER_MB_S,
            "at least",
            floor_mb_s,
            note,
        )
