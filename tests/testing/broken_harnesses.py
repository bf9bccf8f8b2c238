"""For each clause of the harness contract a harness that breaks it, and as little else as can be.

All are `Sound` but for one thing.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.issues import AttemptFault, Issue, IssueCode, Phase, Severity
from steelyard.components.model import ModelRequest
from steelyard.components.steps import Step


class SoundParams(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    turns: int = 1


class Sound(Harness):
    """Asks, runs a program, answers: keeps every clause."""

    api: ClassVar[int] = 1
    id: ClassVar[str] = "sound"
    version: ClassVar[str] = "1"
    traits: ClassVar[HarnessTraits] = HarnessTraits(calls_model=True)
    Params: ClassVar[type[BaseModel]] = SoundParams

    async def run(self, context: HarnessContext) -> HarnessResult:
        text = await self.ask(context)
        await self.act(context)
        context.step(Step("agent", text))
        return HarnessResult(text)

    async def ask(self, context: HarnessContext) -> str:
        return (await context.model.generate(ModelRequest(context.input.messages))).text

    async def act(self, context: HarnessContext) -> None:
        session = await context.session()
        await session.exec(["true"])


class NoApi(Sound):
    """Inherits `api`, but from a class that says 2."""

    api = 2


class LooseParams(Sound):
    class Params(BaseModel):  # takes whatever is written
        turns: int = 1


class AbsentMindedly(Sound):
    @classmethod
    def unavailable(cls) -> Any:
        return True


class Number(Sound):
    async def run(self, context: HarnessContext) -> HarnessResult:
        result = await super().run(context)
        return HarnessResult(len(result.answer or ""))  # type: ignore[arg-type]


class Unwritable(Sound):
    async def run(self, context: HarnessContext) -> HarnessResult:
        result = await super().run(context)
        return HarnessResult(result.answer, details={"params": self.params})


class Fatal(Sound):
    async def run(self, context: HarnessContext) -> HarnessResult:
        result = await super().run(context)
        issue = Issue(Severity.FATAL, Phase.RUN, IssueCode.HARNESS_CRASHED, "it crashed")
        return HarnessResult(result.answer, (issue,))


class OddSteps(Sound):
    async def run(self, context: HarnessContext) -> HarnessResult:
        result = await super().run(context)
        context.step(Step("tool", "a step of nobody"))
        return result


class Nosy(Sound):
    async def run(self, context: HarnessContext) -> HarnessResult:
        result = await super().run(context)
        _ = getattr(context, "spec", None)
        return result


class Denier(Sound):
    async def run(self, context: HarnessContext) -> HarnessResult:
        _ = context.reference
        return await super().run(context)


class Litterer(Sound):
    async def run(self, context: HarnessContext) -> HarnessResult:
        random.seed(context.seed)
        os.environ["STEELYARD_TEST_LITTER"] = str(id(context))
        return await super().run(context)


class Spawner(Sound):
    async def run(self, context: HarnessContext) -> HarnessResult:
        result = await super().run(context)
        self.kept = asyncio.ensure_future(asyncio.sleep(600))
        return result


STARTED: list[int] = []
"""Processes that `Starter` has left behind, to be ended by the test."""


class Starter(Sound):
    async def run(self, context: HarnessContext) -> HarnessResult:
        result = await super().run(context)
        STARTED.append(os.posix_spawn("/bin/sleep", ["sleep", "600"], os.environ))
        return result


class Moody(Sound):
    made = 0

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        Moody.made += 1
        self.number = Moody.made

    async def run(self, context: HarnessContext) -> HarnessResult:
        result = await super().run(context)
        return HarnessResult(f"{result.answer} {self.number}")


class Mindful(Sound):
    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        self.runs = 0

    async def run(self, context: HarnessContext) -> HarnessResult:
        self.runs += 1
        number = self.runs
        result = await super().run(context)
        return HarnessResult(f"{result.answer} {number}")


class Mixer(Sound):
    async def run(self, context: HarnessContext) -> HarnessResult:
        self.context = context
        text = await self.ask(context)
        await self.act(context)
        self.context.step(Step("agent", text))
        return HarnessResult(text)


class Clinger(Sound):
    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        self.used: list[str] = []

    async def run(self, context: HarnessContext) -> HarnessResult:
        self.used.append(context.task_id)
        return await super().run(context)

    async def close(self) -> None:
        self.used.pop()


def _local() -> type[Harness]:
    class Local(Sound):
        """Nobody else finds a class of a function."""

    return Local


LOCAL = _local()


class Parser(Sound):
    async def ask(self, context: HarnessContext) -> str:
        return str(int(await super().ask(context) or "x"))


class Slow(Sound):
    async def ask(self, context: HarnessContext) -> str:
        try:
            return await super().ask(context)
        except asyncio.CancelledError:
            await asyncio.sleep(60)
            raise


class Swallower(Sound):
    async def ask(self, context: HarnessContext) -> str:
        try:
            return await super().ask(context)
        except asyncio.CancelledError:
            return "so far"


class Orphaner(Sound):
    async def ask(self, context: HarnessContext) -> str:
        self.asked = asyncio.ensure_future(super().ask(context))
        return await asyncio.shield(self.asked)


class Consoler(Sound):
    async def ask(self, context: HarnessContext) -> str:
        try:
            return await super().ask(context)
        except AttemptFault:
            return "I do not know"


class Stoic(Sound):
    async def act(self, context: HarnessContext) -> None:
        try:
            await super().act(context)
        except Exception:
            context.step(Step("system", "no environment"))


class Sleeper(Sound):
    async def ask(self, context: HarnessContext) -> str:
        await asyncio.sleep(0.01)
        return await super().ask(context)


@dataclass(frozen=True)
class Broken:
    """A broken harness, and which clauses it breaks beside the one it is for."""

    component: type[Harness]
    also: frozenset[str] = frozenset()
    suite: Mapping[str, Any] = field(default_factory=dict)


BROKEN: Mapping[str, Broken] = {
    "it_declares_what_it_is": Broken(NoApi),
    "its_parameters_are_json": Broken(LooseParams),
    "it_says_what_a_machine_lacks": Broken(AbsentMindedly),
    "it_answers_text_or_nothing": Broken(Number),
    "its_details_are_json": Broken(Unwritable),
    "it_reports_errors_and_warnings_alone": Broken(Fatal),
    "its_steps_are_well_formed": Broken(OddSteps),
    "it_uses_only_its_context": Broken(Nosy),
    "it_keeps_to_its_traits": Broken(Denier),
    "it_leaves_the_process_as_it_was": Broken(Litterer),
    "it_leaves_no_task_behind": Broken(Spawner),
    "it_leaves_no_process_behind": Broken(Starter),
    "equal_instances_do_the_same": Broken(Moody, frozenset({"attempts_at_once_do_not_mix"})),
    "nothing_of_an_attempt_stays": Broken(Mindful, frozenset({"attempts_at_once_do_not_mix"})),
    "attempts_at_once_do_not_mix": Broken(Mixer),
    "closing_is_safe": Broken(Clinger),
    "it_runs_in_a_fresh_interpreter": Broken(LOCAL),
    "odd_answers_of_the_model_are_no_crash": Broken(
        Parser, frozenset({"attempts_at_once_do_not_mix"})
    ),
    "it_ends_at_once_when_cancelled": Broken(Slow),
    "a_cancellation_comes_through": Broken(Swallower),
    "a_cancelled_run_leaves_no_task": Broken(Orphaner),
    "faults_of_the_model_pass_through": Broken(Consoler),
    "faults_of_the_environment_pass_through": Broken(Stoic),
    "its_own_waiting_is_not_the_agents_time": Broken(Sleeper),
}
