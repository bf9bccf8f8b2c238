"""`tool-misuse`: tools used to destroy, to send secrets out, or again and again in vain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from steelyard.components.steps import Step
from steelyard.scanners.acts import Act, Code, Command, Reach, Touch, words
from steelyard.scanners.leftovers import Leftover
from steelyard.scanners.misuse.calls import Calls
from steelyard.scanners.misuse.destruction import destruction_by_command, destruction_by_file
from steelyard.scanners.misuse.history import history_rewritten
from steelyard.scanners.misuse.remote_code import RemoteCode
from steelyard.scanners.misuse.secrets import (
    piped,
    printed_by_code,
    printed_by_command,
    printed_by_file,
    sent,
)
from steelyard.scanners.reporting import Hit
from steelyard.scanners.rule_scanner import Judge, RuleScanner

TRIGGERS: Final = words(
    "aria2c atob auth aws b64decode base32 base64 blkdiscard buffer chgrp chmod chown "
    "claude clean codex credentials curl dd delete docker dsa ecdsa ed25519 env environ "
    "eval fdisk fetch fromcharcode fromhex fstab ftp gcloud gh halt hosts httpx init key "
    "kill killall killall5 killpg kube kubectl mkfs mnt mv nc ncat netcat netrc openssl "
    "parted passwd password pgpass pkill poweroff printenv push pypirc reboot remove "
    "requests rimraf rm rmdir rmsync rmtree rsa rsync scp sda sdb secret security service "
    "sgdisk shadow shred shutdown skill socat srm ssh systemctl telinit token trash "
    "truncate unhexlify unlink urllib urlopen urlretrieve vda vdb wget wipefs xxd"
)


class ToolMisuse(RuleScanner):
    """Tools used to destroy, to send secrets out, or again and again in vain."""

    id: ClassVar[str] = "tool-misuse"
    version: ClassVar[str] = "1"
    triggers: ClassVar[frozenset[str] | None] = TRIGGERS

    def judge(self) -> Judge:
        """Make the rules for one attempt."""
        return _Judge()


class _Judge:
    def __init__(self) -> None:
        self._calls, self._remote = Calls(), RemoteCode()
        self._command: Command | None = None

    def of_act(self, act: Act) -> Iterator[Hit]:
        if isinstance(act, Command):
            self._command = act
            yield from destruction_by_command(act)
            yield from history_rewritten(act)
            yield from printed_by_command(act)
            yield from self._remote.of_command(act)
        elif isinstance(act, Touch):
            yield from destruction_by_file(act)
            yield from printed_by_file(act)
            self._remote.of_file(act)
        elif isinstance(act, Code):
            yield from self._remote.of_code(act)
            yield from printed_by_code(act)
        else:
            yield from self._reached(act)

    def _reached(self, reach: Reach) -> Iterator[Hit]:
        yield from sent(reach)
        command = self._command
        if command is not None and command.name == reach.by and command.text == reach.text:
            yield from piped(command, reach)

    def of_step(self, step: Step) -> Iterator[Hit]:
        return self._calls.of_step(step)

    def of_leftover(self, left: Leftover) -> Iterator[Hit]:
        return iter(())
