"""The model gateway of a request, and what one attempt has to do with it.

A request's gateway starts when its first attempt needs it and closes with the executor. An
attempt is admitted for as long as its agent runs: then its token is worth nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from steelyard.components.clock import AgentTimer
from steelyard.components.gateway import ModelAccess, ModelGate
from steelyard.components.harness import HarnessResult
from steelyard.components.issues import SEVERITY, AttemptFault, IssueCode, Severity
from steelyard.components.steps import Step
from steelyard.components.values import NO_USAGE, Usage
from steelyard.config.errors import Fault
from steelyard.config.redaction import Redactor
from steelyard.config.secrets import SecretStore
from steelyard.models.allowance import Allowance

_REF: Final = "gateway:"


class AttemptTicket(Protocol):
    """What the gateway keeps of one attempt."""

    token: str

    @property
    def usage(self) -> Usage:
        """Everything its calls have consumed, calls that were cut off included."""
        ...

    @property
    def calls_succeeded(self) -> int:
        """How many calls brought an answer."""
        ...

    @property
    def last_fault(self) -> AttemptFault | None:
        """Why the last call failed; None where it did not."""
        ...

    def access(self, url: str) -> ModelAccess:
        """Say how programs reach the gateway at an address."""
        ...

    async def revoke(self) -> None:
        """End its calls; its token is refused from now on."""
        ...


class OpenGateway(ModelGate, Protocol):
    """A gateway that runs."""

    @property
    def is_open(self) -> bool:
        """False once it serves nothing any more."""
        ...

    def admit(
        self,
        *,
        timer: AgentTimer,
        allowance: Allowance,
        on_step: Callable[[Step], None],
        on_fault: Callable[[AttemptFault], None],
        seed: int | None = None,
    ) -> AttemptTicket:
        """Let an attempt in; `on_fault` is told what must end it."""
        ...

    async def close(self) -> None:
        """End every call and listener."""
        ...


class RequestGateway:
    """The gateway of one request: started when first needed."""

    def __init__(
        self, start: Callable[[], Awaitable[OpenGateway]], secrets: SecretStore | None = None
    ) -> None:
        """Start nothing yet; tokens are kept in `secrets` while they are worth something."""
        self._start = start
        self.secrets = secrets or SecretStore({})
        self._open: OpenGateway | None = None
        self._starting: asyncio.Lock | None = None

    async def started(self) -> OpenGateway:
        """Give the gateway, starting it at the first call, and anew where it was ended since.

        Raises:
            AttemptFault: it cannot be started.
        """
        if self._open is not None and self._open.is_open:
            return self._open
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self._open is None or not self._open.is_open:
                try:
                    self._open = await self._start()
                except (OSError, Fault) as error:
                    raise AttemptFault(
                        IssueCode.ENVIRONMENT_OPEN_FAILED,
                        f"the model gateway cannot be started: {error}",
                    ) from error
            return self._open

    async def close(self) -> None:
        """Close it, where it was started."""
        gateway, self._open = self._open, None
        if gateway is not None:
            await gateway.close()


class GatewayUse:
    """One attempt's use of its request's gateway: ticket, token, and the fault that ends it."""

    def __init__(
        self,
        gateway: RequestGateway,
        allowance: Allowance,
        on_step: Callable[[Step], None],
        seed: int | None = None,
    ) -> None:
        self._gateway = gateway
        self._seed = seed
        self._allowance = allowance
        self._on_step = on_step
        self._gate: OpenGateway | None = None
        """What the session leads to."""
        self._ticket: AttemptTicket | None = None
        self._scope: asyncio.Timeout | None = None
        self._own = SecretStore({})
        self._redactor = Redactor(self._own)
        self.fault: AttemptFault | None = None
        """What ended the attempt, once something did."""

    @property
    def usage(self) -> Usage:
        """What was consumed through the gateway."""
        return NO_USAGE if self._ticket is None else self._ticket.usage

    @property
    def calls_succeeded(self) -> int:
        """How many calls through the gateway brought an answer."""
        return 0 if self._ticket is None else self._ticket.calls_succeeded

    async def gate(self) -> ModelGate:
        """Give the gateway for the session that is opened.

        Raises:
            AttemptFault: it cannot be started.
        """
        self._gate = await self._gateway.started()
        return self._gate

    async def access(self, url: str, timer: AgentTimer) -> ModelAccess:
        """Admit the attempt, once; say how its programs reach the model.

        Args:
            url: where the session's programs reach the gateway.
            timer: the agent's stopwatch.

        Raises:
            AttemptFault: the gateway cannot be started, or the one that the session leads to was
                ended since.
        """
        gateway = self._gate or await self._gateway.started()
        if self._ticket is None:
            if not gateway.is_open:
                words = "the model gateway was ended before the agent began"
                raise AttemptFault(IssueCode.ENVIRONMENT_LOST, words)
            ticket = gateway.admit(
                timer=timer,
                allowance=self._allowance,
                on_step=self._on_step,
                on_fault=self._end_with,
                seed=self._seed,
            )
            self._ticket = ticket
            self._own.put(_REF, ticket.token)
            self._gateway.secrets.put(_REF + str(id(self)), ticket.token)
        return self._ticket.access(url)

    def text(self, text: str) -> str:
        """Copy a text without this attempt's token."""
        return self._redactor.text(text)

    def tree(self, data: Any) -> Any:
        """Copy plain data without this attempt's token."""
        return self._redactor.tree(data)

    def clean(self, step: Step) -> Step:
        """Copy a step without this attempt's token."""
        if self._redactor.is_idle:
            return step
        return Step.from_json(self._redactor.tree(step.as_json()))

    async def held(self, run: Awaitable[HarnessResult]) -> HarnessResult:
        """Await the harness, and end it where the gateway says so; then end the attempt's access.

        Raises:
            AttemptFault: what ended it; or the endpoint's fault, where that made the agent fail.
        """
        try:
            async with asyncio.timeout(None) as scope:
                self._scope = scope
                result = await run
        except TimeoutError:
            if self.fault is None or not scope.expired():
                raise
            raise self.fault from None
        except AttemptFault as fault:
            raise self._blamed(fault) from fault
        finally:
            self._scope = None
            if self._ticket is not None:
                await self._ticket.revoke()
        if self.fault is not None:
            raise self.fault
        unanswered = self._endpoint_fault()
        fell_short = any(issue.severity is Severity.ERROR for issue in result.issues)
        if unanswered is not None and (fell_short or not self.calls_succeeded):
            raise unanswered  # it gave up, or ended as if it had ever had a model
        return result

    def forget(self) -> None:
        """Let go of the token's registration: what bears it has been cleaned."""
        self._gateway.secrets.drop(_REF + str(id(self)))

    def _end_with(self, fault: AttemptFault) -> None:
        """End the harness for a fault of the gateway's; the first one counts."""
        if self.fault is None:
            self.fault = fault
            if self._scope is not None:
                self._scope.reschedule(asyncio.get_running_loop().time())

    def _blamed(self, fault: AttemptFault) -> AttemptFault:
        """Say whose fault a failed run is: never the agent's where it had no model."""
        if self.fault is not None:
            return self.fault
        if SEVERITY[fault.code] is not Severity.ERROR:
            return fault
        return self._endpoint_fault() or fault

    def _endpoint_fault(self) -> AttemptFault | None:
        fault = None if self._ticket is None else self._ticket.last_fault
        return fault if fault is not None and SEVERITY[fault.code] is Severity.FATAL else None
