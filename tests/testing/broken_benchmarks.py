"""For each clause of the benchmark contract a benchmark that breaks it, and as little else."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from steelyard.components.benchmark import (
    Benchmark,
    BenchmarkInfo,
    Evaluation,
    MetricSpec,
    Reference,
    ScoringContext,
    Task,
    TaskInput,
    binary,
    scalar,
)
from steelyard.components.values import Message

ANSWER = "the quick brown fox jumps over"
SOLVED = Path(__file__).parent / "solved"
"""A workspace that is as its reference would leave it."""
_COUNT = itertools.count()


class SoundParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    tasks: int = 2


class Sound(Benchmark):
    """Phrases to be repeated: keeps every clause."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "sound"
    Params: ClassVar[type[BaseModel]] = SoundParams

    def info(self) -> BenchmarkInfo:
        metrics: tuple[MetricSpec, ...] = (binary("correct"), scalar("share", bounds=(0.0, 1.0)))
        return BenchmarkInfo(self.id, "1", metrics, "correct", False)

    def load_tasks(self) -> Sequence[Task]:
        return [
            Task(f"t{n}", {"n": n, "hint": f"phrase {n}", "right": f"{ANSWER} {n}"}) for n in (1, 2)
        ]

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        return TaskInput((Message("user", f"Which phrase is meant? {task.data['hint']}"),))

    def generation_content(self, task: Task) -> Any:
        return {"hint": task.data["hint"]}

    def reference(self, task: Task) -> Reference | None:
        return Reference(task.data["right"])

    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        return Evaluation(self.metrics(task, context.answer))

    def metrics(self, task: Task, answer: str | None) -> dict[str, Any]:
        right = answer == task.data["right"]
        return {"correct": right, "share": float(right)}


class NoId(Sound):
    id = ""  # an id is text that is not empty

    def info(self) -> BenchmarkInfo:
        return BenchmarkInfo("sound", "1", (binary("correct"), scalar("share")), "correct", False)


class LooseParams(Sound):
    class Params(BaseModel):
        tasks: int = 2


class AbsentMinded(Sound):
    @classmethod
    def unavailable(cls) -> Any:
        return 1


class NoVersion(Sound):
    def info(self) -> BenchmarkInfo:
        known = super().info()
        return BenchmarkInfo(known.id, "", known.metrics, known.primary, False)


class Restless(Sound):
    def info(self) -> BenchmarkInfo:
        known = super().info()
        return BenchmarkInfo(known.id, f"v{next(_COUNT)}", known.metrics, known.primary, False)


class Twins(Sound):
    def load_tasks(self) -> Sequence[Task]:
        return [*super().load_tasks(), *super().load_tasks()]


class Shuffler(Sound):
    def load_tasks(self) -> Sequence[Task]:
        first = next(_COUNT) % 2
        tasks = super().load_tasks()
        return tasks[::-1] if first else tasks


class Tuples(Sound):
    def load_tasks(self) -> Sequence[Task]:
        return [Task(t.id, {**t.data, "pair": (1, 2)}) for t in super().load_tasks()]


class Drawer(Sound):
    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        shown = super().task_input(task, attempt=attempt, seed=seed)
        return TaskInput((*shown.messages, Message("user", str(next(_COUNT)))))


class Scribbler(Sound):
    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        dict.__setitem__(task.data, "shown", True)  # type: ignore[arg-type]
        return super().task_input(task, attempt=attempt, seed=seed)


class Silent(Sound):
    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        return TaskInput(())

    def generation_content(self, task: Task) -> Any:
        return {}


class Teller(Sound):
    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        return TaskInput((Message("user", f"Say: {task.data['right']}"),))

    def generation_content(self, task: Task) -> Any:
        return dict(task.data)


class Leaver(Sound):
    """Its workspace is what its reference lays over it."""

    def task_input(self, task: Task, *, attempt: int, seed: int) -> TaskInput:
        shown = super().task_input(task, attempt=attempt, seed=seed)
        return TaskInput(shown.messages, workspace=(SOLVED,))

    def reference(self, task: Task) -> Reference | None:
        return Reference(task.data["right"], files=SOLVED)


class Binary(Sound):
    def evaluation_content(self, task: Task) -> Any:
        return {"right": task.data["right"].encode()}


class Forgetful(Sound):
    def generation_content(self, task: Task) -> Any:
        return {"n": task.data["n"]}


class Hopeless(Sound):
    def reference(self, task: Task) -> Reference | None:
        return Reference("something else altogether")


class Generous(Sound):
    def metrics(self, task: Task, answer: str | None) -> dict[str, Any]:
        return {"correct": answer in (None, task.data["right"]), "share": 0.0}


class Lenient(Sound):
    def metrics(self, task: Task, answer: str | None) -> dict[str, Any]:
        return {"correct": answer in ("", task.data["right"]), "share": 0.0}


class Delicate(Sound):
    def metrics(self, task: Task, answer: str | None) -> dict[str, Any]:
        (answer or "").encode()
        return super().metrics(task, answer)


class Unnamed(Sound):
    """Gives its primary metric for right answers alone."""

    def metrics(self, task: Task, answer: str | None) -> dict[str, Any]:
        found = super().metrics(task, answer)
        return found if found["correct"] or answer is None else {"share": 0.0}


class Talkative(Sound):
    def metrics(self, task: Task, answer: str | None) -> dict[str, Any]:
        return {**super().metrics(task, answer), "mood": 0.5}


class Boundless(Sound):
    def metrics(self, task: Task, answer: str | None) -> dict[str, Any]:
        return {**super().metrics(task, answer), "share": 1.5}


class Fickle(Sound):
    def metrics(self, task: Task, answer: str | None) -> dict[str, Any]:
        return {**super().metrics(task, answer), "share": (next(_COUNT) % 100) / 100}


class Marker(Sound):
    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        dict.__setitem__(task.data, "scored", True)  # type: ignore[arg-type]
        return await super().evaluate(task, context)


class Caller(Sound):
    async def evaluate(self, task: Task, context: ScoringContext) -> Evaluation:
        with suppress(OSError), socket.socket() as connection:
            connection.connect(("127.0.0.1", 9))
        return await super().evaluate(task, context)


@dataclass(frozen=True)
class Broken:
    """A broken benchmark, and which clauses it breaks beside the one it is for."""

    component: type[Benchmark]
    also: frozenset[str] = frozenset()


def _broken(component: type[Benchmark], *also: str) -> Broken:
    return Broken(component, frozenset(also))


BROKEN: Mapping[str, Broken] = {
    "it_declares_what_it_is": _broken(NoId),
    "its_parameters_are_json": _broken(LooseParams),
    "it_says_what_a_machine_lacks": _broken(AbsentMinded),
    "it_describes_itself": _broken(NoVersion),
    "it_describes_itself_always_alike": _broken(Restless),
    "its_tasks_have_ids_of_their_own": _broken(Twins),
    "loading_gives_the_same_each_time": _broken(Shuffler),
    "its_tasks_are_json": _broken(Tuples, "identities_are_json"),
    "a_task_shows_the_same_each_time": _broken(
        Drawer, "what_is_shown_is_in_the_generation_identity"
    ),
    "showing_a_task_leaves_it_alone": _broken(Scribbler, "scoring_leaves_the_task_alone"),
    "an_agent_is_shown_messages": _broken(Silent),
    "the_prompt_gives_nothing_away": _broken(Teller),
    "the_workspace_gives_nothing_away": _broken(Leaver),
    "identities_are_json": _broken(Binary),
    "what_is_shown_is_in_the_generation_identity": _broken(Forgetful),
    "the_reference_passes": _broken(Hopeless),
    "doing_nothing_does_not_pass": _broken(Generous),
    "a_wrong_answer_is_a_low_score": _broken(Lenient),
    "a_hostile_answer_is_scored": _broken(Delicate),
    "the_primary_metric_is_there": _broken(Unnamed, "a_wrong_answer_is_a_low_score"),
    "only_declared_metrics_are_given": _broken(Talkative),
    "values_are_finite_and_within_bounds": _broken(Boundless),
    "scoring_twice_gives_the_same": _broken(Fickle),
    "scoring_leaves_the_task_alone": _broken(Marker),
    "scoring_needs_no_network": _broken(Caller),
}
