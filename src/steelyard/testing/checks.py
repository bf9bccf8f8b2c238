"""A conformance suite as a table of named clauses, for pytest or without it.

With pytest, one test a clause::

    @pytest.mark.parametrize("check", harness_suite(MyHarness), ids=str)
    def test_it_keeps_the_contract(check: Check) -> None:
        check()

Without: `print(run_suite(harness_suite(MyHarness)))`.
"""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar

CHECK_WAIT_S: Final = 120.0
"""A check that takes longer has failed."""

S = TypeVar("S")
Clause = Callable[[S], Awaitable[None]]
"""A clause looks at a subject and raises, with what it saw, where the contract is broken."""


@dataclass(frozen=True, slots=True)
class Check:
    """One clause of a contract, bound to what is to be checked."""

    name: str
    clause: str
    """What the contract asks, in a sentence."""
    function: Callable[[], Awaitable[None]]

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Check it, in an event loop of its own.

        Raises:
            AssertionError: the contract is broken; the message says what was seen.
            TimeoutError: the check did not end within `CHECK_WAIT_S`.
        """
        try:
            asyncio.run(self._within_time())
        except AssertionError as error:
            if not error.args:  # pytest rewrites asserts of tests alone
                error.args = (f"broken: {self.clause}",)
            raise

    async def _within_time(self) -> None:
        async with asyncio.timeout(CHECK_WAIT_S):
            await self.function()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """How one check went."""

    check: Check
    failure: str | None
    """The traceback; None where it passed."""

    @property
    def passed(self) -> bool:
        """True where the clause is kept."""
        return self.failure is None


@dataclass(frozen=True, slots=True)
class Report:
    """How a suite went."""

    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """True where every clause is kept."""
        return all(result.passed for result in self.results)

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the clauses that are broken."""
        return tuple(result.check.name for result in self.results if not result.passed)

    def __str__(self) -> str:
        lines = []
        for result in self.results:
            word = "passed" if result.passed else "FAILED"
            lines.append(f"{word} {result.check.name}: {result.check.clause}")
            if result.failure is not None:
                lines += [f"       {line}" for line in result.failure.rstrip().splitlines()]
        lines.append(f"{len(self.results) - len(self.failed)} of {len(self.results)} clauses kept")
        return "\n".join(lines)


def run_suite(checks: Iterable[Check]) -> Report:
    """Run every check; one that fails does not stop the next."""
    results = []
    for check in checks:
        try:
            check()
        except Exception:  # noqa: BLE001 — a report: whatever is raised has broken the clause
            results.append(CheckResult(check, traceback.format_exc()))
        else:
            results.append(CheckResult(check, None))
    return Report(tuple(results))


class Clauses(Generic[S]):
    """The clauses of one suite, in the order in which they are written."""

    def __init__(self) -> None:
        self._clauses: dict[str, Clause[S]] = {}

    def add(self, clause: Clause[S]) -> Clause[S]:
        """Take a coroutine function into the table; its docstring is the clause. A decorator."""
        name = getattr(clause, "__name__", "")
        if name in self._clauses or not clause.__doc__:
            raise ValueError(f"the clause {name!r} has no docstring, or stands there twice")
        self._clauses[name] = clause
        return clause

    def names(self) -> tuple[str, ...]:
        """The names of all clauses."""
        return tuple(self._clauses)

    def bind(self, subject: S, *, leave_out: Collection[str] = ()) -> tuple[Check, ...]:
        """Give the checks of a subject.

        Args:
            subject: what the clauses look at.
            leave_out: clauses that this subject does not claim to keep.

        Raises:
            ValueError: there is no clause of that name.
        """
        unknown = sorted(set(leave_out) - set(self._clauses))
        if unknown:
            raise ValueError(f"no such clause: {', '.join(unknown)}; there are {self.names()}")
        return tuple(
            Check(name, " ".join((inspect.getdoc(clause) or "").split()), partial(clause, subject))
            for name, clause in self._clauses.items()
            if name not in leave_out
        )
