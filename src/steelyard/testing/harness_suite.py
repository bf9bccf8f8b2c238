"""The conformance suite of harnesses: what every harness must do, as checks anyone can run.

::

    @pytest.mark.parametrize("check", harness_suite(MyHarness, {"turns": 3}), ids=str)
    def test_it_keeps_the_contract(check: Check) -> None:
        check()

The clauses themselves stand in `harness_checks` and `harness_fault_checks`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from steelyard.components.benchmark import Reference, TaskInput
from steelyard.components.environment import Environment
from steelyard.components.gateway import ModelAccess
from steelyard.components.harness import Harness, HarnessContext, HarnessResult
from steelyard.components.model import ModelClient
from steelyard.testing.checks import Check, Clauses
from steelyard.testing.clock import FakeClock
from steelyard.testing.fake_environment import FakeEnvironment
from steelyard.testing.fake_harness_context import QUESTION, FakeHarnessContext
from steelyard.testing.fake_model import Answer, ScriptedModel

CONTEXT_MEMBERS: Final = frozenset(
    name for name in vars(HarnessContext) if not name.startswith("_")
)
"""What the contract gives a harness."""

CLAUSES: Final[Clauses[HarnessSubject]] = Clauses()


@dataclass(frozen=True, slots=True)
class HarnessSubject:
    """A harness under test, and a world for it to run in."""

    component: type[Harness]
    params: Mapping[str, Any]
    id: str
    """By which a fresh interpreter finds it."""
    input: TaskInput
    answers: tuple[Answer, ...]
    make_environment: Callable[[], Environment]
    reference: Reference | None
    access: ModelAccess | None
    sleeps_while_the_agent_works: bool

    def make(self) -> Harness:
        """Make an instance, as the engine does."""
        return self.component(self.component.Params.model_validate(dict(self.params)))

    def context(
        self, model: ModelClient | None = None, environment: Environment | None = None
    ) -> FakeHarnessContext:
        """Make a context in which it should succeed, but for what is given."""
        return FakeHarnessContext(
            self.input,
            model=model or ScriptedModel(*self.answers),
            environment=environment or self.make_environment(),
            reference=self.reference,
            access=self.access,
            clock=FakeClock(),
        )

    def with_input(self, shown: TaskInput) -> HarnessSubject:
        """The same harness, shown another task."""
        return replace(self, input=shown)


class WatchedContext:
    """Passes on what the contract gives a harness, nothing else, and notes what was touched."""

    def __init__(self, inner: FakeHarnessContext) -> None:
        self.__dict__.update(_inner=inner, touched=set(), foreign=set())

    touched: set[str]
    foreign: set[str]

    def __getattr__(self, name: str) -> Any:
        if name not in CONTEXT_MEMBERS:
            self.foreign.add(name)
            raise AttributeError(f"a HarnessContext has no {name!r}")
        self.touched.add(name)
        return getattr(self.__dict__["_inner"], name)

    def __setattr__(self, name: str, value: object) -> None:
        self.foreign.add(f"{name} =")
        raise AttributeError(f"a harness must not set {name!r} of its context")


@dataclass(frozen=True, slots=True)
class HarnessRun:
    """What one run of a harness came to."""

    result: HarnessResult
    context: FakeHarnessContext
    watch: WatchedContext


async def run_harness(
    subject: HarnessSubject,
    context: FakeHarnessContext | None = None,
    harness: Harness | None = None,
) -> HarnessRun:
    """Run a harness once, in a context of its own unless one is given; its session is closed."""
    context = context or subject.context()
    watch = WatchedContext(context)
    running = harness or subject.make()
    try:
        result = await running.run(watch)
    finally:
        await context.close()
        if harness is None:
            await running.close()
    return HarnessRun(result, context, watch)


def harness_suite(
    component: type[Harness],
    params: Mapping[str, Any] | None = None,
    *,
    input: TaskInput = QUESTION,
    answers: Sequence[Answer] = ("42",),
    environment: Callable[[], Environment] = FakeEnvironment,
    reference: Reference | None = None,
    access: ModelAccess | None = None,
    id: str | None = None,
    sleeps_while_the_agent_works: bool = False,
    leave_out: Collection[str] = (),
) -> tuple[Check, ...]:
    """Give the conformance checks of a harness.

    Args:
        component: the class.
        params: its parameters, as people write them.
        input: a task on which it can succeed.
        answers: what its model says to that, call by call; the last one again and again.
        environment: makes the environment of its sessions; by default one in memory, whose
            programs succeed and print nothing.
        reference: for harnesses that play it.
        access: for harnesses whose programs call the model.
        id: by which a fresh interpreter finds the class; its module and name by default.
        sleeps_while_the_agent_works: it polls a program of the agent's, say: then its sleeping
            counts as the agent's time, rightly.
        leave_out: clauses that it does not claim to keep.
    """
    # Imported here, since they import this module: each puts its clauses into the table.
    for module in ("harness_checks", "harness_fault_checks"):
        importlib.import_module(f"steelyard.testing.{module}")
    subject = HarnessSubject(
        component,
        dict(params or {}),
        id or importable_id(component),
        input,
        tuple(answers),
        environment,
        reference if reference is not None else _default_reference(component),
        access,
        sleeps_while_the_agent_works,
    )
    return CLAUSES.bind(subject, leave_out=leave_out)


def _default_reference(component: type[Harness]) -> Reference | None:
    traits = getattr(component, "traits", None)
    return Reference("42") if getattr(traits, "needs_reference", False) else None


def importable_id(component: type[Any]) -> str:
    """Give the id by which another interpreter finds a class: its module, else its file.

    Raises:
        TypeError: it stands in no file.
    """
    try:
        spec = importlib.util.find_spec(component.__module__)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and component.__module__ != "__main__":
        return f"{component.__module__}:{component.__qualname__}"
    return f"{Path(inspect.getfile(component)).resolve()}:{component.__qualname__}"
