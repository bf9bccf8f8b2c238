"""What one execution has gathered so far: its sessions, time, issues and answer.

Doubles as the context that the harness sees. `attempt.py` moves it through the phases.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from steelyard.components.benchmark import Evaluation, Reference, Task, TaskInput
from steelyard.components.clock import AgentTimer
from steelyard.components.environment import (
    EnvironmentFault,
    Mount,
    OpenRequest,
    Session,
)
from steelyard.components.gateway import ModelAccess
from steelyard.components.harness import Step
from steelyard.components.issues import (
    SEVERITY,
    AttemptFault,
    Issue,
    IssueCode,
    Phase,
    Severity,
)
from steelyard.components.model import ModelClient
from steelyard.components.session_folders import new_folder, temporary_base
from steelyard.components.values import NO_USAGE, Trust, Usage
from steelyard.engine.checkpointing import Checkpointing
from steelyard.engine.deadlines import RunDeadline, TimeUp
from steelyard.engine.gateways import GatewayUse
from steelyard.engine.preparing import cannot_open
from steelyard.engine.seeds import SEED_VARIABLE
from steelyard.engine.services import Services
from steelyard.engine.spec import (
    ExecutionObserver,
    ExecutionSpec,
)
from steelyard.models.allowance import NO_CHARGE, Allowance, Charge
from steelyard.results.checkpoints import ScoringInput
from steelyard.results.session_tokens import AGENT_SUFFIX as AGENT_SUFFIX
from steelyard.results.session_tokens import FILES_SUFFIX
from steelyard.results.session_tokens import SCORER_SUFFIX as SCORER_SUFFIX

_MAX_MESSAGE_CHARS: Final = 2_000


class Work:
    """What one execution has gathered so far. Also the harness's context."""

    def __init__(
        self, spec: ExecutionSpec, services: Services, observer: ExecutionObserver
    ) -> None:
        self.spec = spec
        self.services = services
        self.observer = observer
        self.phase = Phase.SETUP
        self.issues: list[Issue] = []
        self.steps: list[Step] = []
        self.request_fault: str | None = None
        self.answer: str | None = None
        self.evaluation: Evaluation | None = None
        self.stage_evaluations: list[Evaluation] = []
        self.unscored_stage: Task | None = None
        """The stage that the agent is working on, or was when its time ran out."""
        self.client: ModelClient | None = None
        self.scorer_clients: list[ModelClient] = []
        self.agent: Session | None = None
        self.scorer: Session | None = None
        self.description: Mapping[str, Any] | None = None
        self.trusts: list[Trust] = []
        self.scratch: Path | None = None
        self.inputs: dict[str, Path] = {}
        """What scoring needs: path in the agent's working folder → where it lies here."""
        self.inputs_are_whole = True
        """False where something of it could not be kept."""
        self.kept: list[ScoringInput] = []
        self.artifacts: list[Mapping[str, Any]] = []
        self._checkpointing: Checkpointing | None = None
        self.setup_s = self.agent_s = self.waited_s = self.collect_s = self.evaluate_s = 0.0
        self._opening: asyncio.Lock | None = None
        self._timer: AgentTimer | None = None
        self._agent_began_s: float | None = None
        self._allowance: Allowance | None = None
        self.gateway: GatewayUse | None = None
        """The attempt's use of the gateway, where its harness is one that uses it."""
        if services.gateway is not None:
            self.gateway = GatewayUse(
                services.gateway, self.allowance(), self.step, self.model_seed
            )

    # -- the harness's context --------------------------------------------------------------

    input: TaskInput

    @property
    def task_id(self) -> str:
        """The task worked on."""
        return self.spec.task.id

    @property
    def attempt(self) -> int:
        """Which of the k tries this is, counted from 1."""
        return self.spec.attempt

    @property
    def seed(self) -> int:
        """For whatever is drawn at random."""
        return self.spec.seed

    @property
    def model_seed(self) -> int | None:
        """What calls of its model are seeded with; None where the request was given no seed."""
        return None if self.spec.request.seed is None else self.spec.seed

    @property
    def reference(self) -> Reference | None:
        """The known good answer, where the harness asks for it."""
        if not self.services.harness.traits.needs_reference:
            return None
        return self.services.benchmark.reference(self.spec.task)

    @property
    def timer(self) -> AgentTimer:
        """The agent's stopwatch; made for who looks at it."""
        if self._timer is None:
            self._timer = AgentTimer(self.services.clock, started_s=self._agent_began_s)
        return self._timer

    def start_timer(self, began_s: float, deadline: RunDeadline | None) -> None:
        """Begin the agent's own time; what it waits moves the deadline."""
        self._agent_began_s = began_s
        self._timer = None
        if deadline is not None:
            self._timer = AgentTimer(self.services.clock, deadline, started_s=began_s)

    def stop_timer(self) -> None:
        """End the agent's own time."""
        assert self._agent_began_s is not None  # noqa: S101 — it was started
        waited_s = 0.0 if self._timer is None else self._timer.waited_s
        self.agent_s = self.services.clock.monotonic() - self._agent_began_s - waited_s
        # Stages were scored meanwhile.
        self.waited_s = waited_s - self.evaluate_s - self.collect_s

    @property
    def checkpointing(self) -> Checkpointing:
        """What writes the checkpoint; made where there may be one."""
        if self._checkpointing is None:
            self._checkpointing = Checkpointing(self)
        return self._checkpointing

    @property
    def has_checkpointing(self) -> bool:
        """True once a checkpoint was thought of."""
        return self._checkpointing is not None

    def let_go(self) -> None:
        """Part from what writes the checkpoint: as a pair that knows each other, both would stay
        until cycles are looked for."""
        self._checkpointing = None

    @property
    def checkpoint(self) -> Mapping[str, Any] | None:
        """`{path, sha256}` of the checkpoint on the disk; None where there is none."""
        return None if self._checkpointing is None else self._checkpointing.reference

    @property
    def model(self) -> ModelClient:
        """The model, bound to this attempt."""
        if self.client is None:
            if self.services.endpoint is None:
                raise AttemptFault(
                    IssueCode.CONFIGURATION,
                    f"the harness {self.services.harness.id} calls a model, but the request's "
                    "model id is none",
                    request_fault=True,
                )
            self.client = self.services.endpoint.client(
                self.timer, self.allowance(), self.model_seed
            )
        return self.client

    @property
    def has_model(self) -> bool:
        """False where the request's model id is `none`."""
        return self.services.endpoint is not None

    def passed_bound(self) -> str | None:
        """Say which bound of the attempt its calls have passed; None where none was made."""
        return None if self._allowance is None else self._allowance.beyond()

    def allowance(self) -> Allowance:
        """What calls for the attempt may consume, whichever way they are made."""
        if self._allowance is None:
            request = self.spec.request
            self._allowance = Allowance(request.attempt_usd, request.attempt_tokens)
            self._allowance.charge_earlier(self.spec.earlier)
        return self._allowance

    def charge(self) -> Charge:
        """What the execution itself spent, on calls of the agent and of the scorer."""
        charge = NO_CHARGE
        if self._allowance is not None:
            earlier, spent = self.spec.earlier, self._allowance.charge
            usd, tokens = spent.usd - earlier.usd, spent.tokens - earlier.tokens
            charge = Charge(usd, tokens, spent.is_whole)
        evaluation = self.evaluation
        if evaluation is not None and evaluation.usage is not NO_USAGE:
            charge += Charge.of(evaluation.usage)
        return charge

    async def model_access(self) -> ModelAccess:
        """Say how programs in the session reach the model."""
        harness, use = self.services.harness, self.gateway
        if use is None:
            why = (
                "but the request's model id is none"
                if harness.traits.uses_gateway
                else "but its traits do not say `uses_gateway`"
            )
            raise AttemptFault(
                IssueCode.CONFIGURATION,
                f"programs of the harness {harness.id} call a model, {why}",
                request_fault=True,
            )
        session = await self.session()
        if session.model_url is None:
            raise AttemptFault(
                IssueCode.CONFIGURATION,
                f"{self.services.environment.id} cannot bring the model gateway to its programs; "
                "name another environment",
                request_fault=True,
            )
        return await use.access(session.model_url, self.timer)

    def step(self, step: Step) -> None:
        """Add a step to the trajectory; that of an agent inside the environment is told at once."""
        if self.gateway is not None:
            step = self.gateway.clean(step)
        if self.services.harness.traits.uses_gateway:
            self.observer.step(self.spec.token, step)
        self.steps.append(step)

    def keep_answer(self, answer: str | None) -> None:
        """Keep what the answer is as things stand."""
        self.answer = self.without_token(answer)

    async def session(self) -> Session:
        """Open, once, the agent's environment with the task's workspace in it."""
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self.agent is None:
                with self.timer.waiting():
                    return await self._open_agent_session()
            return self.agent

    async def _open_agent_session(self) -> Session:
        phase, self.phase = self.phase, Phase.SETUP
        began = self.services.clock.monotonic()
        limit_s = self.spec.request.limits.setup()
        preparation = self.services.preparation
        mounts = () if preparation is None else await preparation.mounts()
        try:
            async with asyncio.timeout(limit_s) as scope:
                session = self.agent = await self.open_session(AGENT_SUFFIX, mounts)
                for folder in self.input.workspace:
                    await session.upload(folder, ".")
                await self.services.benchmark.begin(self.spec.task, session)
        except TimeoutError as error:
            if scope.expired():
                raise TimeUp(f"no environment within {limit_s:g} s") from error
            raise
        finally:
            self.setup_s += self.services.clock.monotonic() - began
        self.phase = phase
        return session

    async def open_session(self, suffix: str, mounts: Sequence[Mount] = ()) -> Session:
        """Open a session whose token ends with `suffix`."""
        token = self.spec.token + suffix
        environment, needs = self.services.environment, self.input.needs
        if suffix == SCORER_SUFFIX and self.input.scorer_needs is not None:
            needs = self.input.scorer_needs
        if (refused := cannot_open(environment, needs, mounts)) is not None:
            raise AttemptFault(IssueCode.ENVIRONMENT_OPEN_FAILED, refused, request_fault=True)
        use = self.gateway if suffix == AGENT_SUFFIX else None
        env = needs.env
        if self.model_seed is not None and suffix == AGENT_SUFFIX:
            env = {**env, SEED_VARIABLE: str(self.model_seed)}
        request = OpenRequest(
            token=token,
            resources=needs.resources,
            network=needs.network,
            image=needs.image,
            build=needs.build,
            workdir=needs.workdir,
            allowed_hosts=needs.allowed_hosts,
            mounts=tuple(mounts),
            env=env,
            labels=self._labels(),
            gate=None if use is None else await use.gate(),
        )
        try:
            session = await environment.open(request)
        except EnvironmentFault as fault:
            raise AttemptFault(
                IssueCode.ENVIRONMENT_OPEN_FAILED, str(fault), request_fault=fault.is_of_request
            ) from fault
        self.observer.session(token, "opened", environment.id)
        self.trusts.append(session.trust)
        if self.description is None:
            self.description = session.description.as_json()
        return session

    def _labels(self) -> dict[str, str]:
        labels = {"task": self.spec.task.id, "attempt": str(self.spec.attempt)}
        if self.spec.place is not None:
            labels["run"] = os.path.basename(self.spec.place.root)  # noqa: PTH119 — text alone
        return labels

    async def make_scratch(self) -> Path:
        """Make, once, a private folder of the host, named by the token."""
        if self.scratch is None:
            folder = new_folder(self.spec.token + FILES_SUFFIX, base=temporary_base())
            await asyncio.to_thread(folder.mkdir, 0o700)
            self.scratch = folder
        return self.scratch

    # -- time --------------------------------------------------------------------------------

    def begin(self, phase: Phase) -> float:
        """Enter a phase; return the time at which it began."""
        self.phase = phase
        self.observer.phase(self.spec.token, phase)
        return self.services.clock.monotonic()

    # -- outcome -----------------------------------------------------------------------------

    def add_issue(
        self, code: IssueCode, message: str, *, retry_after_s: float | None = None
    ) -> None:
        """Keep an issue of the phase under way, with the severity of its code."""
        if self.gateway is not None:
            message = self.gateway.text(message)
        text = self.services.redact(message)[:_MAX_MESSAGE_CHARS]
        self.issues.append(
            Issue(SEVERITY[code], self.phase, code, text, self.spec.execution, retry_after_s)
        )

    def without_token(self, answer: str | None) -> str | None:
        """The agent was handed a token, and may answer it."""
        return answer if answer is None or self.gateway is None else self.gateway.text(answer)

    @property
    def is_partial(self) -> bool:
        """True where the agent's time ran out, and the benchmark scores what it had done."""
        return self.input.scores_timed_out and any(
            issue.code is IssueCode.AGENT_TIMED_OUT for issue in self.issues
        )

    @property
    def fell_short(self) -> bool:
        """True once anything has happened for which the attempt is not scored."""
        return bool(self.issues) and any(
            issue.severity is not Severity.WARNING
            and not (issue.code is IssueCode.AGENT_TIMED_OUT and self.input.scores_timed_out)
            for issue in self.issues
        )

    @property
    def uncounted_calls(self) -> int:
        """Calls of the agent and its judges that came without token counts."""
        return 0 if self._allowance is None else self._allowance.uncounted

    @property
    def drops_inputs(self) -> bool:
        """True where what scoring took is too large to be kept for a later score."""
        return self._checkpointing is not None and self._checkpointing.drops_inputs

    def consumed(self) -> tuple[Usage, int]:
        """What the agent's model calls consumed so far, and how many brought an answer."""
        usage = self.client.usage if self.client is not None else NO_USAGE
        succeeded = self.client.calls_succeeded if self.client is not None else 0
        if self.gateway is not None:
            usage = usage + self.gateway.usage
            succeeded += self.gateway.calls_succeeded
        return usage, succeeded
