"""`steelyard doctor`: what works on this machine, what does not, and the remedy."""

from __future__ import annotations

from typing import Final

import click

from steelyard.cli.options import output_options

_MARKS: Final = {"works": "ok", "warning": "!!", "broken": "XX", "absent": "--"}


@click.command("doctor")
@output_options
def doctor(as_json: bool, debug: bool) -> int:
    """Try what runs need on this machine: sandbox, engine, disks, clock, proxies, keys.

    Nothing is changed, and nothing leaves the machine. Keys are looked at by name only.
    Exit status 1 where something is broken.
    """
    import os
    from pathlib import Path

    from steelyard.cli.output import note, print_json, say
    from steelyard.components.clock import SystemClock
    from steelyard.doctor.checkup import examine
    from steelyard.doctor.finding import State

    findings = []
    if not as_json:
        note("looking at this machine; some seconds …")
    for finding in examine(os.environ, Path.cwd(), SystemClock()):
        findings.append(finding)
        if not as_json:
            say(f"{_MARKS[finding.state.value]}  {finding.area}: {finding.message}")
            if finding.remedy is not None:
                say(f"      → {finding.remedy}")
    broken = sum(finding.state is State.BROKEN for finding in findings)
    warned = sum(finding.state is State.WARNING for finding in findings)
    if as_json:
        print_json(
            {
                "schema": "doctor/1",
                "healthy": not broken,
                "findings": [finding.as_json() for finding in findings],
            }
        )
    elif broken:
        say(f"\n{broken} broken, {warned} to look at")
    else:
        say(f"\nall that a run needs works here; {warned} to look at")
    return 1 if broken else 0
