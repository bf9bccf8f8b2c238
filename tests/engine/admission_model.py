"""What admission should do, written from design decision 4 alone and as plainly as it can be said.

Every attempt is an entry of a list, every decision looks at everything, amounts are fractions.
It shares nothing with `steelyard.engine`, so the two agree only where both are right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction


def money(amount: float | None) -> Fraction | None:
    return None if amount is None else Fraction(amount)


@dataclass
class Entry:
    task: int
    attempt: int
    execution: int = 1
    ready_at: float = 0.0


@dataclass
class Account:
    """Dollars or tokens, with a limit or None."""

    limit: Fraction | None
    spent: Fraction = Fraction(0)
    held: Fraction = Fraction(0)

    def fits(self, need: Fraction, promised: Fraction = Fraction(0)) -> bool:
        if self.limit is None:
            return True
        left = self.limit - self.spent - self.held - promised
        return left > 0 and left >= need

    def could_fit(self, need: Fraction) -> bool:
        return self.limit is None or (self.limit > self.spent and self.limit - self.spent >= need)


@dataclass
class Running:
    entry: Entry
    usd: Fraction
    tokens: Fraction
    is_pilot: bool


@dataclass
class ModelRequest:
    provider: str
    opens_environment: bool
    overlap: bool
    k: int
    spends: bool
    usd: Account
    tokens: Account
    reserve_usd: Fraction | None
    counts_usd: bool
    counts_tokens: bool
    at_once: int | None = None
    entries: list[Entry] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)
    begun: set[int] = field(default_factory=set)
    usd_costs: list[Fraction] = field(default_factory=list)
    token_costs: list[Fraction] = field(default_factory=list)
    pilots: int = 0
    is_closed: bool = False

    def next_entry(self, now: float) -> Entry | None:
        """Retries first, and where attempts may not overlap, what is left of begun tasks.

        None too while as many run as the request itself allows.
        """
        if self.at_once is not None and len(self.running) >= self.at_once:
            return None
        busy = {run.entry.task for run in self.running}
        able = [
            entry
            for entry in self.entries
            if entry.ready_at <= now and (self.overlap or entry.task not in busy)
        ]

        def place(entry: Entry) -> tuple[bool, int, int]:
            comes_first = entry.execution > 1 if self.overlap else entry.task in self.begun
            return (not comes_first, entry.task, entry.attempt)

        return min(able, key=place, default=None)

    def usd_estimate(self) -> Fraction | None:
        if not self.counts_usd:
            return Fraction(0)
        costs = [cost for cost in self.usd_costs if cost > 0]
        return percentile_95(costs) if costs else self.reserve_usd

    def tokens_estimate(self) -> Fraction | None:
        if not self.counts_tokens:
            return Fraction(0)
        costs = [cost for cost in self.token_costs if cost > 0]
        return percentile_95(costs) if costs else None

    @property
    def is_unknown(self) -> bool:
        pilot_is_over = self.pilots == 4 and not any(run.is_pilot for run in self.running)
        lacks = self.usd_estimate() is None or self.tokens_estimate() is None
        return lacks and not pilot_is_over

    @property
    def needs(self) -> tuple[Fraction, Fraction]:
        if not self.spends:
            return Fraction(0), Fraction(0)
        return self.usd_estimate() or Fraction(0), self.tokens_estimate() or Fraction(0)


def percentile_95(costs: list[Fraction]) -> Fraction:
    latest = costs[-256:]
    for cost in sorted(latest):
        if sum(other <= cost for other in latest) >= Fraction(95, 100) * len(latest):
            return cost
    raise AssertionError("the largest cost bounds them all")


class AdmissionModel:
    def __init__(
        self,
        task_concurrency: int,
        provider_limits: dict[str, int],
        env_open_qps: dict[str, float],
        usd: float | None,
        tokens: int | None,
        reserve_usd: float | None,
    ) -> None:
        self.task_concurrency = task_concurrency
        self.provider_limits = dict(provider_limits)
        self.env_open_qps = env_open_qps
        self.usd = Account(money(usd))
        self.tokens = Account(money(tokens))
        self.reserve_usd = money(reserve_usd)
        self.requests: dict[int, ModelRequest] = {}
        self.last_open: dict[str, float] = {}
        self.is_paused = False

    def open_request(
        self,
        number: int,
        *,
        provider: str,
        opens_environment: bool,
        overlap: bool,
        k: int,
        usd: float | None,
        tokens: int | None,
        reserve_usd: float | None,
        spends: bool,
        max_running: int | None = None,
    ) -> None:
        self.requests[number] = ModelRequest(
            provider,
            opens_environment,
            overlap,
            k,
            spends,
            Account(money(usd)),
            Account(money(tokens)),
            self.reserve_usd if reserve_usd is None else money(reserve_usd),
            counts_usd=spends and (usd is not None or self.usd.limit is not None),
            counts_tokens=spends and (tokens is not None or self.tokens.limit is not None),
            at_once=max_running,
        )

    def add_tasks(self, number: int, attempts: list[tuple[int, int]]) -> None:
        if not self.requests[number].is_closed:
            self.requests[number].entries += [Entry(task, attempt) for task, attempt in attempts]

    def start_next(self, now: float) -> tuple[int, int, int, int] | None:
        """(request, task, attempt, execution) of what starts now."""
        number = self.next_request(now)
        if number is None:
            return None
        request = self.requests[number]
        entry = request.next_entry(now)
        assert entry is not None
        request.entries.remove(entry)
        request.begun.add(entry.task)
        usd, tokens = request.needs
        for account, need in self.accounts(request, usd, tokens):
            account.held += need
        pilot = request.is_unknown
        request.pilots += pilot
        request.running.append(Running(entry, usd, tokens, pilot))
        if request.opens_environment:
            self.last_open[request.provider] = now
        return number, entry.task, entry.attempt, entry.execution

    def next_request(self, now: float) -> int | None:
        """The first, in declaration order, that lacks nothing."""
        if self.is_paused:
            return None
        if sum(len(request.running) for request in self.requests.values()) >= self.task_concurrency:
            return None
        promised_usd = promised_tokens = Fraction(0)
        for number in sorted(self.requests):
            request = self.requests[number]
            if request.next_entry(now) is None:
                continue
            if (
                self.has_provider_slot(request)
                and self.may_open(request, now)
                and self.is_affordable(request, promised_usd, promised_tokens)
            ):
                return number
            usd, tokens = request.needs
            promised_usd += usd
            promised_tokens += tokens
        return None

    def has_provider_slot(self, request: ModelRequest) -> bool:
        limit = self.provider_limits.get(request.provider, 0)
        in_use = sum(
            len(other.running)
            for other in self.requests.values()
            if other.provider == request.provider
        )
        return limit == 0 or in_use < limit

    def may_open(self, request: ModelRequest, now: float) -> bool:
        qps = self.env_open_qps.get(request.provider, 0)
        if not request.opens_environment or not qps or request.provider not in self.last_open:
            return True
        return now >= self.last_open[request.provider] + 1 / qps

    def is_affordable(self, request: ModelRequest, usd_ahead: Fraction, ahead: Fraction) -> bool:
        if not request.spends:
            return True
        usd, tokens = request.needs
        pilots_running = any(run.is_pilot for run in request.running)
        pilot_is_full = request.pilots >= 4 or not request.is_unknown
        return (
            self.usd.fits(usd, usd_ahead)
            and self.tokens.fits(tokens, ahead)
            and request.usd.fits(usd)
            and request.tokens.fits(tokens)
            and not (pilots_running and pilot_is_full)
        )

    def accounts(
        self, request: ModelRequest, usd: Fraction, tokens: Fraction
    ) -> list[tuple[Account, Fraction]]:
        if not request.spends:
            return []
        return [
            (self.usd, usd),
            (request.usd, usd),
            (self.tokens, tokens),
            (request.tokens, tokens),
        ]

    def finish(
        self, number: int, task: int, attempt: int, usd: float | None, tokens: int | None
    ) -> Entry:
        request = self.requests[number]
        (run,) = [
            run for run in request.running if (run.entry.task, run.entry.attempt) == (task, attempt)
        ]
        request.running.remove(run)
        usd_cost = run.usd if usd is None else Fraction(usd)
        token_cost = run.tokens if tokens is None else Fraction(tokens)
        for account, held in self.accounts(request, run.usd, run.tokens):
            account.held -= held
        for account, cost in self.accounts(request, usd_cost, token_cost):
            account.spent += cost
        request.usd_costs.append(usd_cost)
        request.token_costs.append(token_cost)
        return run.entry

    def retry(
        self,
        number: int,
        task: int,
        attempt: int,
        ready_at: float,
        usd: float | None,
        tokens: int | None,
    ) -> None:
        entry = self.finish(number, task, attempt, usd, tokens)
        if not self.requests[number].is_closed:
            again = Entry(task, attempt, entry.execution + 1, ready_at)
            self.requests[number].entries.append(again)

    def drop_attempts(self, number: int, task: int) -> list[int]:
        request = self.requests[number]
        dropped = sorted(entry.attempt for entry in request.entries if entry.task == task)
        request.entries = [entry for entry in request.entries if entry.task != task]
        return dropped

    def close_request(self, number: int) -> list[tuple[int, int]]:
        request = self.requests[number]
        request.is_closed = True
        left = sorted((entry.task, entry.attempt) for entry in request.entries)
        request.entries = []
        return left

    def is_hopeless(self, number: int) -> bool:
        """Nothing in flight, and not enough is left even if all that is held were given back."""
        request = self.requests[number]
        needs = self.accounts(request, *request.needs)
        return not request.running and not all(account.could_fit(need) for account, need in needs)

    def next_time(self, now: float) -> float | None:
        """The first later time at which something could start though nothing else happened."""
        times = [entry.ready_at for r in self.requests.values() for entry in r.entries]
        times += [
            at + 1 / self.env_open_qps[provider]
            for provider, at in self.last_open.items()
            if self.env_open_qps.get(provider)
        ]
        later = sorted(time for time in times if time > now)
        return next((time for time in later if self.next_request(time) is not None), None)
