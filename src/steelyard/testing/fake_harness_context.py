"""A harness context without an engine: a scripted model, sessions in memory, steps on record."""

from __future__ import annotations

from steelyard.components.benchmark import Reference, TaskInput
from steelyard.components.clock import AgentTimer, Clock
from steelyard.components.environment import Environment, OpenRequest, Session
from steelyard.components.gateway import ModelAccess
from steelyard.components.model import ModelClient
from steelyard.components.steps import Step
from steelyard.components.values import Message
from steelyard.testing.clock import FakeClock
from steelyard.testing.fake_environment import FakeEnvironment
from steelyard.testing.fake_model import ScriptedModel

QUESTION = TaskInput((Message("user", "What is 6 times 7? Answer with the number alone."),))


class FakeHarnessContext:
    """A `HarnessContext` for tests.

    Args:
        input: what the agent is shown.
        model: what it may call.
        environment: opens its session; one in memory by default.
        reference: for `oracle` and its like.
        access: what `model_access` gives; an address where nothing answers by default.
        task_id: the task.
        attempt: which try it is.
        seed: for what is drawn.
        clock: of the agent's timer.
    """

    def __init__(
        self,
        input: TaskInput = QUESTION,
        *,
        model: ModelClient | None = None,
        environment: Environment | None = None,
        reference: Reference | None = None,
        access: ModelAccess | None = None,
        task_id: str = "task",
        attempt: int = 1,
        seed: int = 1,
        clock: Clock | None = None,
    ) -> None:
        self.input = input
        self.model: ModelClient = model or ScriptedModel("42")
        self.has_model = True
        self.environment = environment or FakeEnvironment()
        self.reference = reference
        self.task_id = task_id
        self.attempt = attempt
        self.seed = seed
        self.timer = AgentTimer(clock or FakeClock())
        self.steps: list[Step] = []
        self.kept_answer: str | None = None
        self._access = access or ModelAccess(
            "http://127.0.0.1:9", "fake-token-of-this-attempt", "scripted", "openai-chat"
        )
        self._session: Session | None = None

    async def session(self) -> Session:
        """Open the session, once, with the task's workspace in place."""
        if self._session is None:
            with self.timer.waiting():
                self._session = await self.environment.open(OpenRequest(f"{self.task_id}-fake"))
                for folder in self.input.workspace:
                    await self._session.upload(folder, ".")
        return self._session

    async def model_access(self) -> ModelAccess:
        """Say how programs would reach the model."""
        await self.session()
        return self._access

    def step(self, step: Step) -> None:
        """Keep a step."""
        self.steps.append(step)

    def keep_answer(self, answer: str | None) -> None:
        """Keep what the answer would be, were the agent cut off now."""
        self.kept_answer = answer

    async def close(self) -> None:
        """Close the session, as the engine does afterwards."""
        if self._session is not None:
            await self._session.close()
