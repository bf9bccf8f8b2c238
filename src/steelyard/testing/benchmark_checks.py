"""Clauses of the benchmark contract: what it says of itself, its tasks, what an agent is shown."""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from steelyard.components.benchmark import Benchmark, Reference, Task, TaskInput
from steelyard.components.contract import check_class, checked_tasks, described
from steelyard.components.values import Message
from steelyard.testing.benchmark_suite import CLAUSES, BenchmarkSubject
from steelyard.testing.harness_checks import check_params, check_unavailable

_TELLING_CHARS: Final = 20
"""A reference shorter than this may stand in a prompt by chance, or as one of its options."""
_MAX_LEAVES: Final = 50
_CANARY: Final = " canary-8d1f"
_MAX_FILE_BYTES: Final = 1_000_000


@CLAUSES.add
async def it_declares_what_it_is(subject: BenchmarkSubject) -> None:
    """Its class has `api`, `id` and `Params`, and implements what is abstract."""
    check_class("benchmark", subject.component.__name__, subject.component)


@CLAUSES.add
async def its_parameters_are_json(subject: BenchmarkSubject) -> None:
    """Parameters come through JSON as they are, and a misspelt one is an error."""
    check_params(subject.component.Params, subject.params)


@CLAUSES.add
async def it_says_what_a_machine_lacks(subject: BenchmarkSubject) -> None:
    """`unavailable()` gives None, or says what is missing."""
    check_unavailable(subject.component)


@CLAUSES.add
async def it_describes_itself(subject: BenchmarkSubject) -> None:
    """`info()` names metrics, the primary one among them, with bounds that are bounds."""
    described(subject.component.__name__, subject.make())


@CLAUSES.add
async def it_describes_itself_always_alike(subject: BenchmarkSubject) -> None:
    """`info()` says the same before and after loading, and of every equal instance."""
    benchmark = subject.make()
    before = benchmark.info()
    benchmark.load_tasks()
    assert benchmark.info() == before, "info() changes with loading"
    assert subject.make().info() == before, "info() differs between equal instances"


@CLAUSES.add
async def its_tasks_have_ids_of_their_own(subject: BenchmarkSubject) -> None:
    """`load_tasks()` gives a list of tasks, none empty, no id twice."""
    checked_tasks(subject.component.__name__, subject.make().load_tasks())


@CLAUSES.add
async def loading_gives_the_same_each_time(subject: BenchmarkSubject) -> None:
    """Tasks, their content and their order do not change between loads."""
    first = [task.as_json() for task in subject.make().load_tasks()]
    second = [task.as_json() for task in subject.make().load_tasks()]
    assert first == second, _first_difference(first, second)


def _first_difference(first: Sequence[Any], second: Sequence[Any]) -> str:
    pairs = zip(first, second, strict=False)
    odd = next(((a, b) for a, b in pairs if a != b), None)
    return f"{len(first)} tasks, then {len(second)}" if odd is None else f"{odd[0]}, then {odd[1]}"


@CLAUSES.add
async def its_tasks_are_json(subject: BenchmarkSubject) -> None:
    """A task goes to another process as JSON, and arrives unchanged."""
    for task in subject.make().load_tasks():
        sent = task.as_json()
        arrived = json.loads(json.dumps(sent, allow_nan=False))
        assert arrived == sent, f"{task.id} arrives as {arrived}"


@CLAUSES.add
async def a_task_shows_the_same_each_time(subject: BenchmarkSubject) -> None:
    """`task_input` depends on the task, the attempt and the seed, and on nothing else."""
    benchmark, other = subject.make(), subject.make()
    for task in subject.tasks(benchmark):
        far = Task.from_json(json.loads(json.dumps(task.as_json())))
        first = benchmark.task_input(task, attempt=1, seed=7)
        assert benchmark.task_input(task, attempt=1, seed=7) == first, f"{task.id} changes"
        assert other.task_input(far, attempt=1, seed=7) == first, (
            f"{task.id} is shown otherwise by an instance that has loaded nothing"
        )


@CLAUSES.add
async def showing_a_task_leaves_it_alone(subject: BenchmarkSubject) -> None:
    """`task_input`, `reference` and the contents of the identities change no task."""
    benchmark = subject.make()
    for task in subject.tasks(benchmark):
        before = copy.deepcopy(dict(task.data))
        benchmark.task_input(task, attempt=1, seed=1)
        benchmark.reference(task)
        benchmark.generation_content(task)
        benchmark.evaluation_content(task)
        assert dict(task.data) == before, f"{task.id} was changed"


@CLAUSES.add
async def an_agent_is_shown_messages(subject: BenchmarkSubject) -> None:
    """A `TaskInput` has at least one message; workspaces are folders that exist."""
    benchmark = subject.make()
    for task in subject.tasks(benchmark):
        shown: object = benchmark.task_input(task, attempt=1, seed=1)
        assert isinstance(shown, TaskInput), f"{task.id}: {type(shown).__name__}"
        assert shown.messages, f"{task.id} has no message"
        assert all(isinstance(message, Message) for message in shown.messages), shown.messages
        for folder in shown.workspace:
            assert isinstance(folder, Path) and folder.is_dir(), f"{task.id}: no folder {folder}"  # noqa: PT018


@CLAUSES.add
async def the_prompt_gives_nothing_away(subject: BenchmarkSubject) -> None:
    """What is hidden of a task stands in none of its messages, nor in `config`."""
    benchmark = subject.make()
    for task in subject.tasks(benchmark):
        shown = benchmark.task_input(task, attempt=1, seed=1)
        text = "\n".join(message.content for message in shown.messages)
        text += json.dumps(dict(shown.config), ensure_ascii=False, default=str)
        for secret in _hidden(subject, benchmark, task):
            assert secret not in text, f"{task.id} shows {secret[:80]!r}"


@CLAUSES.add
async def the_workspace_gives_nothing_away(subject: BenchmarkSubject) -> None:
    """No file of a workspace holds what is hidden, or is already as the reference leaves it."""
    benchmark = subject.make()
    for task in subject.tasks(benchmark):
        shown = benchmark.task_input(task, attempt=1, seed=1)
        secrets = _hidden(subject, benchmark, task)
        solved = _files(benchmark.reference(task))
        for name, data in _workspace(shown.workspace):
            text = data.decode("utf-8", "replace")
            for secret in secrets:
                assert secret not in text, f"{task.id}: {name} holds {secret[:80]!r}"
            solution = solved.pop(name, None)
            if solution is not None and solution != data:
                solved[name] = b""  # it differs, so the reference does something
        assert not _files(benchmark.reference(task)) or solved, f"{task.id} is solved already"


def _hidden(subject: BenchmarkSubject, benchmark: Benchmark, task: Task) -> Sequence[str]:
    if subject.hidden is not None:
        return subject.hidden(task)
    known = benchmark.reference(task)
    answer = known.answer if known is not None else None
    return [answer] if answer is not None and len(answer) >= _TELLING_CHARS else []


def _files(reference: Reference | None) -> dict[str, bytes]:
    if reference is None or reference.files is None:
        return {}
    return dict(_workspace([reference.files]))


def _workspace(folders: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.stat().st_size <= _MAX_FILE_BYTES:
                yield path.relative_to(folder).as_posix(), path.read_bytes()


@CLAUSES.add
async def identities_are_json(subject: BenchmarkSubject) -> None:
    """`generation_content` and `evaluation_content` are JSON, and alike for equal instances."""
    benchmark, other = subject.make(), subject.make()
    for task in benchmark.load_tasks():
        far = Task.from_json(json.loads(json.dumps(task.as_json())))
        for name in ("generation_content", "evaluation_content"):
            content = getattr(benchmark, name)(task)
            json.dumps(content, allow_nan=False)
            assert content == getattr(other, name)(far), f"{name} of {task.id} changes"


@CLAUSES.add
async def what_is_shown_is_in_the_generation_identity(subject: BenchmarkSubject) -> None:
    """Where a change of `task.data` changes what an agent is shown, `generation_content` changes.

    Else the work of an agent that saw something else would be reused.
    """
    benchmark = subject.make()
    for task in subject.tasks(benchmark):
        shown = benchmark.task_input(task, attempt=1, seed=1)
        content = benchmark.generation_content(task)
        for path, changed in _changed(task):
            try:
                other_shown = benchmark.task_input(changed, attempt=1, seed=1)
                other_content = benchmark.generation_content(changed)
            except Exception:  # noqa: BLE001, S112 — data that it refuses are not shown
                continue
            assert other_shown == shown or other_content != content, (
                f"{task.id}: data{path} is shown, and not part of generation_content"
            )


def _changed(task: Task) -> Iterator[tuple[str, Task]]:
    """The task with one text of its data changed, for each of the first texts."""
    for path in list(_texts(task.data, ()))[:_MAX_LEAVES]:
        data = copy.deepcopy(dict(task.data))
        holder: Any = data
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] += _CANARY
        shown = "".join(f"[{key!r}]" for key in path)
        yield shown, Task(task.id, data, task.category, task.cluster)


def _texts(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str) and path:
        yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, (*path, number))
