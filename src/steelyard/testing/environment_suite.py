"""The conformance suite of environments: what every provider must do, as checks anyone can run.

With pytest, for a provider of your own::

    CHECKS = environment_suite(lambda: MyProvider(MyParams()), SuiteTraits(holds_disk=False))

    @pytest.mark.parametrize("check", CHECKS, ids=str)
    def test_it_keeps_the_contract(check: Check) -> None:
        check()

Or by hand: `python -m steelyard.testing.environment_suite sandbox docker,image=NAME`. Checks need
a POSIX shell and a Python inside the session, and fail with an AssertionError that says what was
seen. The checks themselves stand in the modules `environment_checks…`.
"""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import asyncio
import sys
import tempfile
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from steelyard.components.environment import Environment, OpenRequest, Resources, Session
from steelyard.testing.checks import CHECK_WAIT_S, Check


@dataclass(frozen=True, slots=True)
class SuiteTraits:
    """What a provider claims, beyond the contract; its checks run only where it is claimed."""

    holds_memory: bool = True
    """`Resources.memory_mb` ends or refuses a program that takes more."""
    holds_processes: bool = True
    """`Resources.processes` bounds processes and threads at once."""
    holds_disk: bool = True
    """`Resources.disk_mb` bounds what one program can leave in the session."""
    closes_network: bool = True
    """`network: none` leaves no interface but loopback."""
    ends_every_process: bool = True
    """A process that has left its session and cleared its environment is ended too."""
    hides_host: bool = True
    """Files of the host that are not the system's cannot be read."""
    keeps_sessions: bool = False
    """`Session.keep` lets a session stand, as `Environment.keeps_sessions` says."""
    keeps_services: bool = False
    """What a program left in the background runs on, as `Environment.keeps_services` says."""
    offers_mounts: bool = False
    """Folders of the host can be mounted read-only, as `Environment.offers_mounts` says."""
    offers_allowlist: bool = False
    """The network can be held to named hosts, as `Environment.offers_allowlist` says."""
    owns_root: bool = False
    """Every path inside is the session's own: no folder of the host is in reach of any."""
    python: str = "python3"
    """A Python 3 inside."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What one check is given."""

    environment: Environment
    traits: SuiteTraits
    scratch: Path
    """An empty folder of the host."""
    token: str
    opened: list[Session] = field(default_factory=list)

    @asynccontextmanager
    async def session(
        self, *, resources: Resources | None = None, **fields: object
    ) -> AsyncIterator[Session]:
        """Open a session with the trial's token; it is closed in any case."""
        request = OpenRequest(self.token, resources or Resources(), **fields)  # type: ignore[arg-type]
        session = await self.environment.open(request)
        self.opened.append(session)
        try:
            yield session
        finally:
            await session.close()


EnvironmentClause = Callable[[Trial], Awaitable[None]]


class EnvironmentSuite:
    """Runs the checks against one provider."""

    def __init__(self, make: Callable[[], Environment], traits: SuiteTraits | None = None) -> None:
        """Take a function that makes the provider; it is called in each check's own event loop."""
        self._make = make
        self._traits = traits or SuiteTraits()

    def names(self) -> Sequence[str]:
        """List the checks that apply to what the provider claims."""
        return [name for name, check in _checks().items() if _applies(check, self._traits)]

    async def check(self, name: str) -> None:
        """Run one check; afterwards nothing of it may be left on the machine.

        Raises:
            AssertionError: the provider breaks the contract.
            KeyError: there is no such check.
        """
        check = _checks()[name]
        environment = self._make()
        token = f"suite{abs(hash((name, id(environment)))):x}"
        with tempfile.TemporaryDirectory() as folder:
            try:
                async with asyncio.timeout(CHECK_WAIT_S):
                    await check(Trial(environment, self._traits, Path(folder), token))
                    left = await environment.find_leftovers([token])
                    assert not left, f"left behind: {[item.description for item in left]}"
            finally:
                await environment.close()


def environment_suite(
    make: Callable[[], Environment],
    traits: SuiteTraits | None = None,
    *,
    leave_out: Collection[str] = (),
) -> tuple[Check, ...]:
    """Give the conformance checks of a provider.

    Args:
        make: makes the provider; called in each check's own event loop.
        traits: what it claims beyond the contract; everything by default.
        leave_out: clauses that it does not claim to keep.

    Raises:
        ValueError: there is no clause of that name.
    """
    suite = EnvironmentSuite(make, traits)
    clauses = _checks()
    unknown = sorted(set(leave_out) - set(clauses))
    if unknown:
        raise ValueError(f"no such clause: {', '.join(unknown)}; there are {tuple(clauses)}")
    return tuple(
        Check(name, " ".join((clauses[name].__doc__ or "").split()), partial(suite.check, name))
        for name in suite.names()
        if name not in leave_out
    )


def needs(
    *claims: str, unless: str | None = None
) -> Callable[[EnvironmentClause], EnvironmentClause]:
    """Mark a check that runs only where the provider makes these claims of `SuiteTraits`.

    `unless` names a claim that contradicts it.
    """

    def mark(check: EnvironmentClause) -> EnvironmentClause:
        check.claims = claims  # type: ignore[attr-defined]
        check.unless = unless  # type: ignore[attr-defined]
        return check

    return mark


def _applies(check: EnvironmentClause, traits: SuiteTraits) -> bool:
    unless = getattr(check, "unless", None)
    if unless is not None and getattr(traits, unless):
        return False
    return all(getattr(traits, claim) for claim in getattr(check, "claims", ()))


def _checks() -> dict[str, EnvironmentClause]:
    # Imported here: the checks import this module for their trial.
    from steelyard.testing import (
        environment_checks,
        environment_checks_files,
        environment_checks_gate,
        environment_checks_keep,
        environment_checks_offers,
    )

    found: dict[str, EnvironmentClause] = {}
    modules = (
        environment_checks,
        environment_checks_files,
        environment_checks_gate,
        environment_checks_keep,
        environment_checks_offers,
    )
    for module in modules:
        found |= {
            name: value
            for name, value in vars(module).items()
            if not name.startswith("_")
            and getattr(value, "__module__", "") == module.__name__
            and asyncio.iscoroutinefunction(value)
        }
    return found


BUILTIN_TRAITS: Final = {
    "host_process": SuiteTraits(
        holds_memory=False,
        holds_processes=False,
        holds_disk=False,
        closes_network=False,
        ends_every_process=False,
        hides_host=False,
        keeps_sessions=True,
    ),
    "sandbox": SuiteTraits(keeps_sessions=True, offers_mounts=True),
    "docker": SuiteTraits(
        keeps_sessions=True,
        keeps_services=True,
        offers_mounts=True,
        offers_allowlist=True,
        owns_root=True,
    ),
}


def builtin_suite(name: str, **params: object) -> EnvironmentSuite:
    """Give the suite of a built-in provider with its default parameters, or these."""
    from steelyard.components.registry import Kind, find

    component = find(Kind.ENVIRONMENT, name).component
    return EnvironmentSuite(lambda: component(component.Params(**params)), BUILTIN_TRAITS.get(name))


def main(arguments: Sequence[str]) -> int:
    """Run every check of the named providers, print how each went; 1 where one failed."""
    failed = 0
    for argument in arguments:
        provider, *settings = argument.split(",")
        params = dict(setting.split("=", 1) for setting in settings)
        suite = builtin_suite(provider, **params)
        for name in suite.names():
            try:
                asyncio.run(suite.check(name))
            except Exception:  # noqa: BLE001 — a report: the next check must still run
                failed += 1
                sys.stdout.write(f"FAILED {provider} {name}\n{traceback.format_exc()}\n")
            else:
                sys.stdout.write(f"passed {provider} {name}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
