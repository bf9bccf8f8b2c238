"""Every look at the machine, in order; each on its own, so that one that fails spoils no other."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from steelyard.components.clock import Clock
from steelyard.doctor import components, disks, machine, network
from steelyard.doctor.finding import Finding, State
from steelyard.doctor.settings import examine_settings


def examine(variables: Mapping[str, str], cwd: Path, clock: Clock) -> Iterator[Finding]:
    """Look at everything; findings come as they are made. Blocking, some seconds.

    Nothing is sent anywhere but to a container engine's socket on this machine.
    """
    yield machine.examine_python()
    settings = examine_settings(variables, cwd)
    yield from settings.findings
    looks: list[tuple[str, Callable[[], Iterable[Finding]]]] = [
        ("environment sandbox", lambda: components.examine_environment("sandbox")),
        ("environment host_process", lambda: components.examine_environment("host_process")),
        ("environment docker", lambda: components.examine_docker(variables)),
        ("results", lambda: [disks.examine_folder("results", settings.results_dir)]),
        ("temporary files", lambda: [_temporary()]),
        ("clock", lambda: [machine.examine_clock(clock)]),
        ("steady clock", lambda: [machine.examine_time_steps()]),
        ("limits", lambda: machine.examine_limits(settings.concurrency)),
        ("proxies", lambda: network.examine_proxies(variables)),
        ("certificates", lambda: network.examine_certificates(variables)),
        ("keys", lambda: network.examine_keys(variables, settings.references)),
        ("extras", components.examine_extras),
        ("plug-ins", components.examine_plugins),
    ]
    if settings.data_dir is not None:
        data_dir = settings.data_dir
        looks.insert(3, ("data", lambda: [disks.examine_folder("data", data_dir)]))
    for area, look in looks:
        yield from _guarded(area, look)


def _guarded(area: str, look: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except Exception as error:  # noqa: BLE001 — a machine can surprise in any way; the rest counts
        message = f"the look itself failed: {type(error).__name__}: {error}"
        yield Finding(area, State.BROKEN, message, "report it, with `steelyard doctor --json`")


def _temporary() -> Finding:
    try:
        folder = Path(tempfile.gettempdir())
    except OSError as error:
        return disks.refused("temporary files", Path(tempfile.tempdir or "/tmp"), error)  # noqa: S108
    return disks.examine_folder("temporary files", folder)
