"""The components of this installation: environments tried for real, extras, plug-ins."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from steelyard.components.environment import Environment, EnvironmentFault, OpenRequest
from steelyard.components.extras import install_command
from steelyard.components.issues import AttemptFault
from steelyard.components.registry import Kind, Listing, find, list_components
from steelyard.config.errors import BadInput
from steelyard.doctor.engines import examine_engine
from steelyard.doctor.finding import Finding, State, works

_OPEN_S: Final = 60.0
_NOT_TIGHT: Final = "run as an ordinary user, outside of containers: docs/security.md"
_HELD: Final = ("memory", "processes", "cpu")


def examine_environment(provider: str) -> Iterator[Finding]:
    """Open a session of a provider and run a program in it. Blocking.

    A sandbox's first session tries its walls: what it claims is what a probe found.
    """
    area = f"environment {provider}"
    component: type[Environment] = find(Kind.ENVIRONMENT, provider).component
    if reason := component.unavailable():
        why, _, remedy = reason.partition("; ")
        yield Finding(area, State.BROKEN, why, remedy or "see docs/security.md")
        return
    try:
        message, weak = asyncio.run(_opened(component))
    except (EnvironmentFault, AttemptFault, OSError, TimeoutError) as error:
        why, _, remedy = (str(error) or type(error).__name__).partition("; ")
        yield Finding(area, State.BROKEN, why, remedy or _NOT_TIGHT)
        return
    yield works(area, message)
    if weak:
        yield Finding(
            f"{area}: limits",
            State.WARNING,
            f"no cgroup holds {', '.join(weak)}; each process is limited by itself where possible",
            "run as root, or with a delegated cgroup: `systemd-run --user --scope -p Delegate=yes "
            "steelyard …`",
        )


def examine_docker(variables: Mapping[str, str]) -> Iterator[Finding]:
    """Find an engine and start one container on it; nothing is pulled. Blocking.

    Bounded in time; of a container and an image made for this nothing stays.
    """
    area = "environment docker"
    component: type[Any] = find(Kind.ENVIRONMENT, "docker").component
    named = variables.get("DOCKER_HOST", "unix://")
    engine = examine_engine(variables)
    has_extra = component.has_extra()
    is_found = component.unavailable() is None if has_extra else engine.state is State.WORKS
    if not is_found or not named.startswith("unix://"):
        yield engine
        return
    if not has_extra:
        yield engine
        reason, _, remedy = str(component.unavailable()).partition("; ")
        yield Finding(area, State.ABSENT, reason, remedy)
        return
    try:
        yield works(area, asyncio.run(_tried(component)))
    except TimeoutError:
        message = f"no container has run a program within {_OPEN_S:g} s"
        yield Finding(area, State.BROKEN, message, "restart the engine")
    except (EnvironmentFault, OSError) as error:
        why, _, remedy = (str(error) or type(error).__name__).rpartition("; ")
        yield Finding(
            area, State.BROKEN, why or remedy, remedy if why else "see docs/containers.md"
        )


async def _tried(component: type[Any]) -> str:
    environment = component(component.Params())
    try:
        async with asyncio.timeout(_OPEN_S):
            engine = await environment.describe_engine()
            trust = await environment.try_engine()
    finally:
        await environment.close()
    return f"a program ran in a container, trust {trust}; {engine}"


async def _opened(component: type[Environment]) -> tuple[str, list[str]]:
    environment = component(component.Params())
    try:
        async with asyncio.timeout(_OPEN_S):
            session = await environment.open(OpenRequest(f"doctor{os.getpid()}"))
            try:
                done = await session.exec(["sh", "-c", "echo ready"], timeout_s=20)
            finally:
                await session.close()
    finally:
        await environment.close()
    if done.stdout.strip() != b"ready":
        said = done.stderr_text.strip()[-200:]
        raise EnvironmentFault(f"a program in it ended with {done.exit_code}: {said}")
    details = session.description.details
    weak = [name for name in _HELD if name in details and details[name] != "cgroup"]
    return f"a program ran, trust {session.trust.value}", weak


def examine_extras(listings: Sequence[Listing] | None = None) -> Iterator[Finding]:
    """Look which optional dependencies of built-ins are missing."""
    if listings is None:
        listings = [one for kind in Kind for one in list_components(kind)]
    missing: dict[str, list[str]] = {}
    present: set[str] = set()
    for listing in listings:
        if listing.extra is None or listing.origin != "built-in" or listing.problem:
            continue
        kind = next(kind for kind in Kind if listing in list_components(kind))
        try:
            component = find(kind, listing.id).component
            # An engine that is missing is not a package that is.
            has_extra = getattr(component, "has_extra", None)
            lacks = component.unavailable() if has_extra is None else not has_extra()
        except BadInput:
            lacks = "it cannot be imported"
        if lacks:
            missing.setdefault(listing.extra, []).append(listing.id)
        else:
            present.add(listing.extra)
    for extra, ids in sorted(missing.items()):
        message = f"{extra} is not installed; {', '.join(ids)} needs it"
        yield Finding("extras", State.ABSENT, message, f"`{install_command(extra)}`")
    if present:
        yield works("extras", f"installed: {', '.join(sorted(present))}")


def examine_plugins() -> Iterator[Finding]:
    """Import every installed plug-in, as a run that names it would."""
    seen: list[str] = []
    for kind in Kind:
        for listing in list_components(kind):
            if listing.origin == "built-in":
                continue
            if listing.problem:
                yield _refused(kind, listing)
                continue
            try:
                find(kind, listing.id)
            except BadInput as error:
                yield Finding(
                    "plug-ins",
                    State.BROKEN,
                    f"{kind.value} {listing.id} of {listing.origin}: {error.problems[0].message}",
                    error.problems[0].remedy
                    or f"`{sys.executable} -m pip uninstall {listing.origin}`, or tell its authors",
                )
            else:
                seen.append(listing.id)
    if seen:
        yield works("plug-ins", f"usable: {', '.join(seen)}")


def _refused(kind: Kind, listing: Listing) -> Finding:
    message = f"{kind.value} {listing.id} of {listing.origin}: {listing.problem}"
    remedy = f"rename its entry point, or uninstall {listing.origin}"
    return Finding("plug-ins", State.WARNING, message, remedy)
