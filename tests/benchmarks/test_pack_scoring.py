"""From validators to a score; programs in real sandboxes; what agent and scorer each can see."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.benchmarks.pack.digest import folder_digest
from steelyard.benchmarks.pack.scoring import Weighed, score_of
from steelyard.components.benchmark import Evaluation, TaskInput
from steelyard.components.environment import OpenRequest
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.values import Trust
from steelyard.environments.host_process import HostProcess
from tests.benchmarks.scoring import Context, opened, score, write_pack

VALUES = st.floats(0, 1)
FOUND = st.lists(
    st.builds(Weighed, VALUES, st.floats(0.001, 100), st.booleans()), min_size=1, max_size=6
)


@given(FOUND, st.sampled_from(["weighted", "all", "any"]))
def test_a_score_lies_between_0_and_1_and_a_failed_gate_makes_it_0(
    found: list[Weighed], strategy: Any
) -> None:
    value = score_of(found, strategy)
    assert 0 <= value <= 1
    if any(item.is_gate and item.value < 1 for item in found):
        assert value == 0


@given(FOUND)
def test_all_is_never_more_than_any_and_a_perfect_attempt_scores_1(found: list[Weighed]) -> None:
    assert score_of(found, "all") <= score_of(found, "any")
    perfect = [Weighed(1.0, item.weight, item.is_gate) for item in found]
    assert all(score_of(perfect, how) == pytest.approx(1) for how in ("weighted", "all", "any"))


def test_weights_count_and_those_of_0_do_not() -> None:
    found = [Weighed(1, 3, False), Weighed(0, 1, False), Weighed(0, 0, False)]
    assert score_of(found, "weighted") == 0.75
    assert score_of(found, "any") == 1
    assert score_of(found[::2], "all") == 1


def evaluated(root: Path, answer: str | None, provider: str = "host_process") -> Evaluation:
    benchmark = opened(root)
    return score(benchmark, benchmark.load_tasks()[0], Context(answer, provider))


def test_every_validator_is_a_metric_of_its_own(tmp_path: Path) -> None:
    validators = (
        "[{type: contains, expected: a}, {type: contains, expected: b, weight: 3}, "
        "{name: brief, type: regex, pattern: '.{1,3}', full: true, weight: 0}]"
    )
    root = write_pack(tmp_path, validators)
    found = evaluated(root, "b---")
    assert found.metrics == {
        "validator.contains": False,
        "validator.contains-2": True,
        "validator.brief": False,
        "score": 0.75,
    }
    assert set(found.details["reasons"]) == {"contains", "brief"}
    info = opened(root).info()
    assert [metric.name for metric in info.metrics] == [
        "score", "validator.contains", "validator.contains-2", "validator.brief"
    ]  # fmt: skip
    assert info.primary == "score"


def test_a_threshold_makes_the_pack_binary(tmp_path: Path) -> None:
    root = write_pack(
        tmp_path,
        "[{type: contains, expected: a, weight: 0.7}, {type: contains, expected: b, weight: 0.2},"
        " {type: contains, expected: c, weight: 0.1}]\n  threshold: 0.9",
    )
    assert opened(root).info().primary == "correct"
    for answer, correct in (("abc", True), ("ab", True), ("ac", False)):
        assert evaluated(root, answer).metrics["correct"] is correct


def test_a_failed_gate_makes_the_score_0(tmp_path: Path) -> None:
    root = write_pack(
        tmp_path, "[{type: contains, expected: a, gate: true}, {type: contains, expected: b}]"
    )
    assert evaluated(root, "b").metrics["score"] == 0
    assert evaluated(root, "a").metrics["score"] == 0.5


def test_extract_takes_group_1_of_the_last_match(tmp_path: Path) -> None:
    more = "prompt: a\nanswer: {extract: 'answer: (\\w+)'}"
    root = write_pack(tmp_path, "[{type: exact, expected: two}]", more=more)
    assert evaluated(root, "answer: one\nno, answer: two!").metrics["score"] == 1
    assert evaluated(root, "two").metrics["score"] == 0


def test_a_validator_can_read_a_file_that_the_agent_left(tmp_path: Path) -> None:
    root = write_pack(tmp_path / "p", "[{type: exact, expected: x, on: {file: out/a.txt}}]")
    benchmark = opened(root)
    task = benchmark.load_tasks()[0]
    assert benchmark.task_input(task, attempt=1, seed=0).collect == ("out/a.txt",)
    (tmp_path / "left").write_text("x\n")
    (tmp_path / "link").symlink_to(tmp_path / "left")

    def found(artifacts: dict[str, Path]) -> Any:
        return score(benchmark, task, Context("y", artifacts=artifacts)).metrics["score"]

    assert found({"out/a.txt": tmp_path / "left"}) == 1
    assert found({"out/a.txt": tmp_path / "link"}) == 0
    assert found({"out/a.txt": tmp_path}) == 0
    assert found({}) == 0


# -- programs ------------------------------------------------------------------------------------


@pytest.mark.integration
@pytest.mark.parametrize(
    ("validator", "answer", "value"),
    [
        ("{type: command, run: [sh, -c, 'read x; test $x = ok']}", "ok\n", 1),
        ("{type: command, run: [sh, -c, 'exit 3']}", None, 0),
        ("{type: command, run: [sh, -c, 'exit 3'], exit_code: 3}", None, 1),
        ("{type: command, run: [echo, '{{ q }}'], stdout: '{{ q }}'}", None, 1),
        ("{type: command, run: [echo, hi], stdout: hi!}", None, 0),
        ("{type: command, run: [echo, hi], stdout_contains: i}", None, 1),
        ("{type: command, run: [echo, '$(echo {{ q }}; `ls`)'], stdout: '$(echo one?; `ls`)'}",
         None, 1),
        ("{type: command, run: [sh, -c, 'cat test.txt'], files: hidden, stdout: secret}", None, 1),
        ("{type: command, run: [sleep, 60], timeout_seconds: 0.5}", None, 0),
        ("{type: command, run: [sh, -c, 'no-such-program']}", None, 0),
        ("{type: command, run: [./made-by-the-agent]}", None, 0),
        ("{type: command, run: [sh, -c, 'yes | head -c 20000000; exit 1']}", None, 0),
        ("{type: code, entry_point: f, tests: 'def check(f): assert f(2) == 4'}",
         "```python\ndef f(x): return 2 * x\n```", 1),
        ("{type: code, entry_point: f, tests: 'def check(f): assert f(2) == 4'}",
         "def f(x): return x", 0),
        ("{type: code, tests: 'assert y == 3'}", "y = 3", 1),
        ("{type: code, tests: 'assert y == 3'}", "import sys; sys.exit(0)", 0),
        ("{type: code, tests_file: tests.py, before: 'z = 1'}", "y = z + 2", 1),
        ("{type: code, entry_point: f, tests: 'def check(f): pass'}", None, 0),
    ],
)  # fmt: skip
def test_programs_score_in_the_sandbox(
    tmp_path: Path, validator: str, answer: str | None, value: int
) -> None:
    root = write_pack(tmp_path, f"[{validator}]")
    (root / "hidden").mkdir()
    (root / "hidden/test.txt").write_text("secret")
    (root / "tests.py").write_text("assert y == 3")
    found = evaluated(root, answer, "sandbox")
    assert found.metrics["score"] == value, found.details
    assert found.trust is Trust.CONTAINED


@pytest.mark.integration
def test_a_program_that_is_not_there_is_a_fault_and_never_a_zero(tmp_path: Path) -> None:
    root = write_pack(tmp_path, "[{type: command, run: [no-such-program]}]")
    with pytest.raises(AttemptFault) as caught:
        evaluated(root, "x", "sandbox")
    assert caught.value.code is IssueCode.SCORER_CRASHED
    assert "no-such-program" in caught.value.message


@pytest.mark.integration
def test_texts_can_be_read_from_what_a_command_printed(tmp_path: Path) -> None:
    root = write_pack(
        tmp_path,
        "[{type: command, run: [echo, 'in all: 7']}, {type: number, expected: 7, on: stdout}]",
    )
    assert evaluated(root, "no").metrics["score"] == 1


def test_only_packs_that_run_programs_ask_for_a_sandbox(tmp_path: Path) -> None:
    text = write_pack(tmp_path / "t", "[{type: exact, expected: a}]")
    program = write_pack(tmp_path / "p", "[{type: command, run: [a]}]")
    assert not opened(text).info().runs_model_code
    assert opened(program).info().runs_model_code
    assert evaluated(text, "a").trust is None


# -- what each side sees -------------------------------------------------------------------------


def full_pack(root: Path) -> Path:
    """A pack with something hidden in every place that can hide something."""
    for path, text in {
        "workspace/readme.txt": "visible-workspace",
        "cases/a/own.txt": "visible-case",
        "cases/b/own.txt": "other-case",
        "solutions/a/fix.txt": "SECRET-solution",
        "hidden/test.txt": "SECRET-hidden",
        "tests.py": "SECRET-tests",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return write_pack(
        root,
        "[{type: command, run: ['true'], files: hidden}, {type: code, tests_file: tests.py}, "
        "{type: exact, expected: '{{ answer }}'}]",
        [{"id": "a", "q": "?", "answer": "SECRET-answer", "more": "SECRET-field"}],
        more="prompt: '{{ q }} {{ attempt }}'\nworkspace: workspace\n"
        "reference: {files: 'solutions/{{ id }}'}",
    )


@pytest.mark.integration
def test_hidden_files_and_references_are_never_in_the_agents_environment(tmp_path: Path) -> None:
    benchmark = opened(full_pack(tmp_path / "p"))
    task = benchmark.load_tasks()[0]
    shown = benchmark.task_input(task, attempt=1, seed=0)

    async def everything() -> bytes:
        """Open the agent's environment as the engine does, and read all that is in it."""
        session = await HostProcess(HostProcess.Params()).open(OpenRequest("hidden-test"))
        try:
            for folder in shown.workspace:
                await session.upload(folder, ".")
            found = await session.exec(["sh", "-c", "find . | sort; cat $(find . -type f); env"])
            return found.stdout
        finally:
            await session.close()

    seen = asyncio.run(everything()).decode()
    assert "visible-workspace" in seen
    assert "visible-case" in seen
    assert "other-case" not in seen
    assert "SECRET" not in seen
    assert "SECRET" not in repr(shown.messages)
    assert str(tmp_path) not in repr(shown.messages)


def content(root: Path) -> tuple[str, str, str]:
    benchmark = opened(root)
    task = benchmark.load_tasks()[0]
    return (
        json.dumps(benchmark.generation_content(task), sort_keys=True),
        json.dumps(benchmark.evaluation_content(task), sort_keys=True),
        benchmark.info().version,
    )


def test_content_holds_no_path_of_the_machine_and_nothing_hidden(tmp_path: Path) -> None:
    generation, evaluation, version = content(full_pack(tmp_path / "one"))
    assert (generation, evaluation, version) == content(full_pack(tmp_path / "two"))
    assert "SECRET" not in generation
    assert str(tmp_path) not in generation + evaluation
    assert version.startswith("1+")
    assert len(version) == len("1+") + 12


CHANGES: dict[str, tuple[str, str, str, bool]] = {
    "prompt": ("pack.yaml", "{{ q }} {{", "{{ q }}, {{", True),
    "shown field": ("cases.jsonl", '"?"', '"!"', True),
    "workspace": ("workspace/readme.txt", "visible", "changed", True),
    "case folder": ("cases/a/own.txt", "visible", "changed", True),
    "limits": (
        "pack.yaml",
        "workspace: workspace",
        "workspace: workspace\nlimits: {turns: 3}",
        True,
    ),
    "other case's folder": ("cases/b/own.txt", "other", "changed", False),
    "reference": ("solutions/a/fix.txt", "SECRET", "changed", False),
    "hidden files": ("hidden/test.txt", "SECRET", "changed", False),
    "expected": ("cases.jsonl", "SECRET-answer", "changed", False),
    "validators": ("pack.yaml", "type: exact", "type: contains", False),
    "description": ("pack.yaml", "slug: small", "slug: small\ndescription: x", False),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_the_agent_sees_decides_the_generation_and_every_file_the_version(
    tmp_path: Path, change: tuple[str, str, str, bool]
) -> None:
    name, old, new, is_seen = change
    before = content(full_pack(tmp_path))
    path = tmp_path / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    after = content(tmp_path)
    assert (before[0] != after[0]) is is_seen
    assert before[2] != after[2]


def test_a_digest_sees_names_contents_and_modes_but_not_order_time_or_leftovers(
    tmp_path: Path,
) -> None:
    def made(name: str, order: tuple[str, ...] = ("a", "b"), **files: str) -> str:
        root = tmp_path / name
        root.mkdir()
        for key in order:
            (root / key).write_text(files.get(key, key))
        (root / "__pycache__").mkdir()
        (root / "__pycache__/x.pyc").write_text(name)
        return folder_digest(root)

    same = made("one")
    assert made("two", ("b", "a")) == same
    assert made("three", a="changed") != same
    assert made("four", ("a", "c"), c="b") != same
    (tmp_path / "one/a").chmod(0o755)
    assert folder_digest(tmp_path / "one") != same


def test_the_prompt_differs_by_attempt_and_its_identity_does_not(tmp_path: Path) -> None:
    benchmark = opened(full_pack(tmp_path))
    task = benchmark.load_tasks()[0]
    shown: list[TaskInput] = [
        benchmark.task_input(task, attempt=n, seed=0) for n in itertools.islice((1, 2), 2)
    ]
    assert shown[0].messages != shown[1].messages
    assert benchmark.generation_content(task) == benchmark.generation_content(task)


def test_tasks_travel_as_json_and_score_elsewhere(tmp_path: Path) -> None:
    from steelyard.components.benchmark import Task

    root = write_pack(tmp_path, "[{type: exact, expected: '{{ answer }}'}]")
    task = opened(root).load_tasks()[0]
    travelled = Task.from_json(json.loads(json.dumps(task.as_json())))
    assert score(opened(root), travelled, Context("1")).metrics["score"] == 1
