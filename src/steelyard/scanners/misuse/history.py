"""Git histories that others share, rewritten or removed."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.components.scanner import FindingSeverity
from steelyard.scanners.acts import Command
from steelyard.scanners.reporting import Hit


def history_rewritten(command: Command) -> Iterator[Hit]:
    """Judge one command."""
    if command.name != "git" or command.operands[:1] != ["push"]:
        return
    place = command.args.index("push")
    args = command.args[place + 1 :]
    if any(one in ("--dry-run", "-n", "--help", "-h") for one in args):
        return
    long = {one.partition("=")[0] for one in args if one.startswith("--")}
    short = "".join(one[1:] for one in args if one.startswith("-") and not one.startswith("--"))
    if long & {"--force", "--force-with-lease", "--mirror", "--force-if-includes"} or "f" in short:
        message = "It overwrites a shared history."
    elif long & {"--delete", "--prune"} or "d" in short:
        message = "It deletes a shared branch."
    elif any(one.startswith("+") and len(one) > 1 for one in args):
        message = "It overwrites a shared history."
    elif any(one.startswith(":") and len(one) > 1 for one in args):
        message = "It deletes a shared branch."
    else:
        return
    yield Hit("history-rewritten", FindingSeverity.HIGH, message, command.text)
