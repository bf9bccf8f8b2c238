"""The machine itself: interpreter, clock, processors and limits. Facts first, verdicts pure."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from steelyard.components.clock import Clock
from steelyard.doctor.finding import Finding, State, works

OLDEST_PYTHON: Final = (3, 11)
FILES_AN_ATTEMPT: Final = 16
"""Descriptors that an attempt in a sandbox with its model calls can hold at once."""
_BUILT: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Earlier than any release: a clock before it is wrong."""
_UNSYNCHRONISED: Final = 0x0040
_DAY_S: Final = 86_400.0


def examine_python() -> Finding:
    """Look at the interpreter and the system it runs on."""
    return python_verdict(sys.version_info[:2], platform.system(), platform.machine())


def python_verdict(version: tuple[int, ...], system: str, machine: str) -> Finding:
    """Judge interpreter, system and processor."""
    name = f"Python {'.'.join(map(str, version))} on {system} {machine}"
    if tuple(version) < OLDEST_PYTHON:
        remedy = "install Python 3.11 or newer, and steelyard into a virtual environment of it"
        return Finding("python", State.BROKEN, f"{name} is too old", remedy)
    if system != "Linux":
        remedy = "run model-written code in a container engine, or use a Linux machine or WSL2"
        return Finding("python", State.WARNING, f"{name}: `sandbox` needs Linux", remedy)
    return works("python", name)


def examine_clock(clock: Clock) -> Finding:
    """Look at the wall clock; asks the kernel, never the network."""
    return clock_verdict(clock.now(), _is_synchronised())


def clock_verdict(now: datetime, is_synchronised: bool | None) -> Finding:
    """Judge the wall clock: certificates, `Retry-After` dates and run ids depend on it."""
    shown = now.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if now < _BUILT:
        remedy = "set the clock: `timedatectl set-ntp true`, or `date -s` as root"
        return Finding("clock", State.BROKEN, f"the clock says {shown}, which is past", remedy)
    if is_synchronised is False:
        return Finding(
            "clock",
            State.WARNING,
            f"{shown}; the kernel says that nothing synchronises it",
            "`timedatectl set-ntp true`, or run chrony (for a container: on its host)",
        )
    return works("clock", shown)


def _is_synchronised() -> bool | None:
    """Read the kernel's own word (adjtimex(2)); None where it has none."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "adjtimex"):
        return None
    # `struct timex` begins with: unsigned modes; long offset, freq, maxerror, esterror; int status
    buffer = (ctypes.c_long * 64)()
    if libc.adjtimex(ctypes.byref(buffer)) < 0:
        return None
    return not buffer[5] & 0xFFFFFFFF & _UNSYNCHRONISED


def examine_limits(concurrency: int) -> Iterator[Finding]:
    """Look at descriptors, processes, memory and processors.

    Args:
        concurrency: attempts at once, as the settings say.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield files_verdict(soft, hard, concurrency)
    yield memory_verdict(_available_mib(), os.cpu_count() or 1, concurrency)


def files_verdict(soft: int, hard: int, concurrency: int) -> Finding:
    """Judge the limit of open files against what the settings may need."""
    needed = 128 + FILES_AN_ATTEMPT * concurrency
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return works("open files", f"limit {soft}, {concurrency} attempts at once need {needed}")
    message = f"limit {soft}; {concurrency} attempts at once may need {needed}"
    room = max(1, (soft - 128) // FILES_AN_ATTEMPT)
    if hard == resource.RLIM_INFINITY or hard >= needed:
        remedy = f"`ulimit -n {needed}` in this shell, or `task_concurrency: {room}`"
    else:
        remedy = f"`task_concurrency: {room}`, or a higher hard limit (now {hard}) in limits.conf"
    return Finding("open files", State.WARNING, message, remedy)


def memory_verdict(available_mib: int, processors: int, concurrency: int) -> Finding:
    """Judge memory; a sandboxed test run takes about 64 MiB."""
    message = f"{processors} processors, {available_mib:,} MiB of memory available"
    room = max(1, available_mib // 64)
    if room < concurrency:
        remedy = f"`task_concurrency: {room}`, or end what else runs here"
        return Finding("memory", State.WARNING, f"{message} for {concurrency} at once", remedy)
    return works("memory", message)


def _available_mib() -> int:
    import psutil

    return int(psutil.virtual_memory().available // (1024 * 1024))


def examine_time_steps(sleep_s: float = 0.02) -> Finding:
    """See whether the steady clock moves as it should; suspended and emulated machines jump."""
    before, wall = time.monotonic(), time.perf_counter()
    time.sleep(sleep_s)
    return steps_verdict(time.monotonic() - before, time.perf_counter() - wall)


def steps_verdict(monotonic_s: float, counter_s: float) -> Finding:
    """Judge two clocks that measured the same wait."""
    if abs(monotonic_s - counter_s) > 0.005 or not 0 < monotonic_s < _DAY_S:
        return Finding(
            "steady clock",
            State.BROKEN,
            f"two steady clocks differ: {monotonic_s:.4f} s and {counter_s:.4f} s",
            "choose another clock source: /sys/devices/system/clocksource, or another machine",
        )
    return works("steady clock", "two clocks agree")
