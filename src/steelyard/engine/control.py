"""Steer a launch while it runs: look at it, pause it, drain it, change its limits.

Every change goes through admission, so it decides what starts next and never ends what runs, and
is written into the journal of each request that still goes on: what was asked, and by whom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from steelyard.components.clock import Clock
from steelyard.config.errors import BadInput, Fault
from steelyard.engine.admission import Admission
from steelyard.engine.budget import NO_SPENDING, BudgetStanding
from steelyard.engine.events import Progress
from steelyard.engine.opened_runs import OpenedRuns
from steelyard.results.consumption import without_noise
from steelyard.results.journal import EventKind

MAX_LIMIT: Final = 1_000_000
"""No limit that is set may be above: it would be a slip of the finger."""
_INTERRUPTED: Final = 130


class LaunchState(StrEnum):
    """What a launch does now."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    """Nothing starts; what runs goes on."""
    DRAINING = "draining"
    """Nothing starts any more; it ends with what runs."""
    STOPPING = "stopping"
    """What ran is being ended and cleaned up."""
    ENDED = "ended"


class NotRunning(Fault):
    """There is no launch to steer: it has not begun, or has ended."""

    def __init__(self, *, has_ended: bool) -> None:
        what = "has ended" if has_ended else "has not begun"
        super().__init__(f"the launch {what}: there is nothing to steer")


class UnknownProvider(BadInput):
    """No request of the launch uses this environment provider."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"no request of this launch uses the provider {name!r}",
            remedy=f"providers in use: {', '.join(known)}",
        )


class LimitOutOfRange(BadInput):
    """A limit that means nothing."""

    def __init__(self, what: str, value: int, least: int) -> None:
        super().__init__(
            f"{what} cannot be {value}", remedy=f"a whole number from {least} to {MAX_LIMIT}"
        )


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """What runs through one environment provider."""

    name: str
    running: int
    limit: int
    """0 for none."""


@dataclass(frozen=True, slots=True)
class RequestStatus:
    """Where one request stands, and what it waits for."""

    progress: Progress
    waits_for: str | None
    """What its next execution lacks, in words; None where nothing waits."""
    budget: BudgetStanding

    def as_json(self) -> dict[str, Any]:
        """Give the form of `ctl --json`."""
        return {
            **self.progress.as_json(),
            "queued": self.progress.queued,
            "waits_for": self.waits_for,
            "budget": _budget_json(self.budget),
        }


@dataclass(frozen=True, slots=True)
class LaunchStatus:
    """Where a launch stands."""

    state: LaunchState
    task_concurrency: int
    running: int
    providers: tuple[ProviderStatus, ...]
    requests: tuple[RequestStatus, ...]
    budget: BudgetStanding

    def as_json(self) -> dict[str, Any]:
        """Give the form of `ctl --json`."""
        return {
            "schema": "launch-status/1",
            "state": self.state.value,
            "task_concurrency": self.task_concurrency,
            "running": self.running,
            "providers": {
                one.name: {"running": one.running, "limit": one.limit} for one in self.providers
            },
            "budget": _budget_json(self.budget),
            "requests": [request.as_json() for request in self.requests],
        }


def _budget_json(budget: BudgetStanding) -> dict[str, Any]:
    # What has no limit is not booked: nothing is known of it here, which is not nothing.
    return {
        "spent_usd": None if budget.limit_usd is None else without_noise(budget.spent_usd),
        "limit_usd": budget.limit_usd,
        "spent_tokens": None if budget.limit_tokens is None else budget.spent_tokens,
        "limit_tokens": budget.limit_tokens,
    }


@dataclass(frozen=True, slots=True)
class Steered:
    """What a driver lets be steered."""

    admission: Admission
    runs: OpenedRuns
    clock: Clock
    dispatch: Callable[[], None]
    """Starts what may start now."""
    drain: Callable[[str], bool]
    """Lets nothing more start, for a reason; False where nothing was left to start."""
    cancel: Callable[[int, str], None]
    is_stopping: Callable[[], bool]
    notice: Callable[[str | None, str], None]


class Controls:
    """The handle on one launch: give it to `launch`, then use it while that runs.

    To be used on the launch's event loop; from another thread through
    `loop.call_soon_threadsafe`. Every method that changes something returns True where it did.
    Where the launch has not begun or has ended they raise `NotRunning`.
    """

    def __init__(self) -> None:
        self._steered: Steered | None = None
        self._has_ended = False
        self._is_draining = False
        self._quiet: dict[int, RequestStatus] = {}
        self.address: str | None = None
        """Where `steelyard ctl` reaches it, for `progress.json`; set before it begins."""

    def bind(self, steered: Steered) -> None:
        """Take hold of a launch; for the driver."""
        self._steered = steered
        steered.runs.control = self.address
        for run in steered.runs.going.values():
            run.progress_file.control = self.address

    def release(self) -> None:
        """Let go of it; for the driver."""
        self._steered = None
        self._has_ended = True

    @property
    def roots(self) -> tuple[Path, ...]:
        """The run directories made so far, absolute; none where there is no launch to steer."""
        return () if self._steered is None else self._steered.runs.roots

    @property
    def state(self) -> LaunchState:
        """What the launch does now."""
        if self._steered is None:
            return LaunchState.ENDED if self._has_ended else LaunchState.STARTING
        if self._steered.is_stopping():
            return LaunchState.STOPPING
        if self._is_draining:
            return LaunchState.DRAINING
        return LaunchState.PAUSED if self._steered.admission.is_paused else LaunchState.RUNNING

    def status(self) -> LaunchStatus:
        """Say where the launch stands."""
        held = self._held()
        admission, now_s = held.admission, held.clock.monotonic()
        use = admission.provider_use()
        return LaunchStatus(
            self.state,
            admission.task_concurrency,
            sum(running for running, _ in use.values()),
            tuple(ProviderStatus(name, *of) for name, of in sorted(use.items())),
            tuple(
                self._request_status(held, index, progress)
                for index, progress in enumerate(held.runs.progress(now_s))
            ),
            admission.standing(),
        )

    def _request_status(self, held: Steered, index: int, progress: Progress) -> RequestStatus:
        """Of what does not change any more, or has not begun, the same object again."""
        known = self._quiet.get(index)
        if known is not None and known.progress is progress:
            return known
        run = held.runs.going.get(index)
        if run is None and progress.planned is None:
            status = RequestStatus(progress, "its turn to begin", NO_SPENDING)
        elif run is None and held.runs.results[index].run_dir is None:
            status = RequestStatus(progress, None, NO_SPENDING)
        else:
            waits_for = None if run is None or run.ended else held.admission.blocked_on(index)
            # A cost that is not known counts as what was reserved for it.
            status = RequestStatus(progress, waits_for, held.admission.standing(index))
        if run is None:
            self._quiet[index] = status
        return status

    def pause(self, *, by: str = "the caller") -> bool:
        """Start nothing until `resume`; what runs goes on."""
        held = self._held()
        if held.admission.is_paused:
            return False
        held.admission.pause()
        self._note(held, by, "pause", "paused: nothing starts, what runs goes on")
        return True

    def resume(self, *, by: str = "the caller") -> bool:
        """Start again what may."""
        held = self._held()
        if not held.admission.is_paused:
            return False
        held.admission.resume()
        self._note(held, by, "resume", "resumed")
        held.dispatch()
        return True

    def drain(self, *, by: str = "the caller") -> bool:
        """Start nothing more at all: what runs ends and counts, the rest is `not_started`.

        A request of which something had not started ends `cancelled`, its results kept for
        `--reuse`. False where everything had started already, or all was stopped.
        """
        held = self._held()
        if self._is_draining or held.is_stopping():
            return False
        # Before it takes effect: a request that ends by it has its last event then.
        self._note(held, by, "drain", "draining: what runs ends, nothing more starts")
        self._is_draining = True
        return held.drain(f"it was drained by {by}: what ran went on to its end")

    def set_concurrency(self, limit: int, *, by: str = "the caller") -> bool:
        """Change how many executions run at once; those above a lower limit go on.

        Raises:
            LimitOutOfRange: it is below 1 or absurd.
        """
        held = self._held()
        if not 1 <= limit <= MAX_LIMIT:
            raise LimitOutOfRange("task concurrency", limit, 1)
        if held.admission.task_concurrency == limit:
            return False
        held.admission.set_task_concurrency(limit)
        self._note(held, by, "concurrency", f"task concurrency is {limit}", value=limit)
        held.dispatch()
        return True

    def set_provider_limit(self, provider: str, limit: int, *, by: str = "the caller") -> bool:
        """Change how many executions run through a provider, 0 for no limit.

        Raises:
            UnknownProvider: no request uses it.
            LimitOutOfRange: it is negative or absurd.
        """
        held = self._held()
        use = held.admission.provider_use()
        if provider not in use:
            raise UnknownProvider(provider, sorted(use))
        if not 0 <= limit <= MAX_LIMIT:
            raise LimitOutOfRange(f"the limit of {provider}", limit, 0)
        if use[provider][1] == limit:
            return False
        held.admission.set_provider_limit(provider, limit)
        text = f"at most {limit} through {provider}" if limit else f"no limit for {provider}"
        self._note(held, by, "provider", text, provider=provider, value=limit)
        held.dispatch()
        return True

    def cancel(self, *, by: str = "the caller") -> None:
        """Stop everything as SIGINT does; called again, give up the clean-up."""
        self._held().cancel(_INTERRUPTED, f"it was cancelled by {by}")

    def _held(self) -> Steered:
        if self._steered is None:
            raise NotRunning(has_ended=self._has_ended)
        return self._steered

    def _note(self, held: Steered, by: str, action: str, text: str, **fields: Any) -> None:
        for run in held.runs.going.values():
            if not run.ended:
                run.journal.event(EventKind.CONTROL, action=action, by=by, **fields)
                run.journal.flush()
        held.notice(None, f"{text} (by {by})")
