"""Run a resolved orchestration: plan it, then drive it with this process's executor."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass, replace

from steelyard.components.clock import Clock, SystemClock
from steelyard.components.extras import install_locked
from steelyard.config.errors import BadInput
from steelyard.config.redaction import Redactor
from steelyard.config.resolve import Resolution
from steelyard.engine.control import Controls
from steelyard.engine.control_server import serving
from steelyard.engine.dead_runs import reap_leftovers
from steelyard.engine.driver import Driver
from steelyard.engine.events import LaunchResult, Observer, Unobserved
from steelyard.engine.executor import InProcessExecutor
from steelyard.engine.plan import Plan, make_plan
from steelyard.engine.retries import ATTEMPT_BACKOFF
from steelyard.engine.services import EndpointPool, Maker, Storage
from steelyard.models.backoff import Backoff
from steelyard.results.files import NO_FAULTS, Faults

log = logging.getLogger(__name__)

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
"""What ends a launch from outside, and the exit status it then has.

SIGHUP: its terminal was closed. Under `nohup` that is ignored, and stays so.
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan and what it will run with; nothing has been created yet."""

    plan: Plan
    maker: Maker
    redactor: Redactor
    clock: Clock
    installed: tuple[str, ...] = ()
    """Extras that were installed for it, each with versions and command."""


def prepare(
    resolution: Resolution, *, clock: Clock | None = None, maker: Maker | None = None
) -> Prepared:
    """Plan a resolved orchestration for running it here. Blocking.

    Args:
        resolution: what is to run.
        clock: the system's by default.
        maker: one that also knows components which no id leads to; with the same clock.

    Raises:
        BadInput: something is wrong with it, or this machine lacks what it needs.
    """
    clock = clock or SystemClock()
    secrets = resolution.secrets
    if maker is None:
        maker = Maker(secrets, clock, EndpointPool(secrets, clock), resolution.base_dir)
    plan = make_plan(resolution, clock=clock, maker=maker)
    installed: tuple[str, ...] = ()
    if plan.lacking and resolution.orchestration.runtime.auto_install_dependencies:
        installed = _install(plan)
        plan = make_plan(resolution, clock=clock, maker=maker)
    if plan.lacking:
        raise BadInput.of(plan.lacking)
    for request in plan.requests:
        type(request.services.environment).preload()
    secret_env = resolution.orchestration.runtime.secret_env
    return Prepared(plan, maker, Redactor(secrets, secret_env=secret_env), clock, installed)


def _install(plan: Plan) -> tuple[str, ...]:
    """Install the extras and programs that are lacking; nothing where anything else is, too.

    Raises:
        BadInput: what is lacking is neither.
        Fault: an installer failed.
    """
    if any(problem.extra is None and problem.program is None for problem in plan.lacking):
        raise BadInput.of(plan.lacking)
    extras = sorted({problem.extra for problem in plan.lacking if problem.extra})
    done = [f"{extra}: {install_locked(extra)}" for extra in extras]
    for request in plan.requests:
        installs = request.services.harness.installation()
        if installs is not None:  # of a request before it, another may have installed it
            done.append(installs())
    return tuple(done)


async def launch(
    prepared: Prepared,
    *,
    observer: Observer | None = None,
    controls: Controls | None = None,
    faults: Faults = NO_FAULTS,
    backoff: Backoff = ATTEMPT_BACKOFF,
    handle_signals: bool = False,
    reap: bool = False,
) -> LaunchResult:
    """Run a prepared orchestration to its end.

    Args:
        prepared: what `prepare` gave; used once.
        observer: is told of progress, on the event loop.
        controls: a new handle, to steer the launch with while it runs.
        faults: what a test does to writes.
        backoff: how long a retry of an attempt waits.
        handle_signals: whether `SIGNALS` cancel it; for the main thread only.
        reap: whether what dead runs of these requests left is ended before they start.

    Cancelled from outside (`task.cancel()`, `asyncio.wait_for`), it stops as it does on a signal:
    what runs is ended and cleaned up within its grace, records are flushed, summaries written.
    Only then `CancelledError` leaves it. Cancelled again, it gives up the clean-up.

    Raises:
        BadInput: a run directory is taken or cannot be made; nothing has started.
        CancelledError: it was cancelled from outside; all runs have ended.
    """
    plan, maker = prepared.plan, prepared.maker
    observer = observer or Unobserved()
    executor = InProcessExecutor(maker)
    for request in plan.requests:
        storage = Storage(prepared.redactor.contains_secret, faults)
        services = replace(request.services, redact=prepared.redactor.text, storage=storage)
        if request.spec.model is not None:
            endpoint = maker.endpoints.get(request.spec.model, request.spec.prices)
            services = replace(services, endpoint=endpoint)
        executor.adopt(request.spec, services)
    if reap:
        try:
            for request in plan.requests:
                await reap_leftovers(request, observer.notice)
        except BaseException:
            await executor.close()
            raise
    controls = controls or Controls()
    driver = Driver(
        plan,
        executor,
        clock=prepared.clock,
        observer=observer,
        redactor=prepared.redactor,
        controls=controls,
        faults=faults,
        backoff=backoff,
    )
    with ExitStack() as stack:
        if handle_signals:
            _handle_signals(driver.cancel, stack)
        return await _to_its_end(
            driver, executor, serving(controls, prepared.clock, prepared.redactor.raw)
        )


async def _to_its_end(
    driver: Driver, executor: InProcessExecutor, reachable: AbstractAsyncContextManager[None]
) -> LaunchResult:
    """Run a driver in a task of its own, so that whoever cancels us asks it, not its workers.

    This is that task's owner: it never returns before it has ended.
    """

    async def drive() -> LaunchResult:
        async with reachable:
            try:
                return await driver.run()
            finally:
                await executor.close()

    driving = asyncio.get_running_loop().create_task(drive(), name="steelyard-launch")
    cancelled: asyncio.CancelledError | None = None
    while not driving.done():
        try:
            await asyncio.wait((driving,))
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
            driver.cancel(SIGNALS[signal.SIGINT], "the launch was cancelled by its caller")
    if cancelled is not None:
        raise cancelled from (None if driving.cancelled() else driving.exception())
    return driving.result()


def _handle_signals(cancel: Callable[[int, str], None], stack: ExitStack) -> None:
    loop = asyncio.get_running_loop()
    for number, status in SIGNALS.items():
        if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue
        loop.add_signal_handler(number, cancel, status, f"{number.name} was received")
        stack.callback(loop.remove_signal_handler, number)
