"""Who owns a run: a run is alive while its owner holds the `flock` on its `lock` file.

The kernel lets go of it when the owner ends, however it ends. The identity written inside is for
finding what a dead owner left behind, never for deciding whether it is dead.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import orjson

from steelyard.results.files import NO_FAULTS, Faults, open_lock_file, write_lock_file
from steelyard.results.plain_files import read_plain

LOCK_SCHEMA: Final = "lock/1"
_MAX_IDENTITY_BYTES: Final = 64 * 1024
_PATIENCE_S: Final = (0.001, 0.01, 0.05, 0.1)

NETWORK_FILE_SYSTEMS: Final[Mapping[int, str]] = MappingProxyType(
    {
        0x6969: "NFS",
        0x517B: "SMB",
        0xFE534D42: "SMB2",
        0xFF534D42: "CIFS",
        0x01021997: "9P",
        0x00C36400: "Ceph",
        0x0BD00BD0: "Lustre",
        0x47504653: "GPFS",
        0x5346414F: "AFS",
        0x73757245: "Coda",
    }
)
"""`f_type` of statfs(2), from linux/magic.h."""


@dataclass(frozen=True, slots=True)
class OwnerIdentity:
    """A process, told apart from every other one of any boot or namespace."""

    boot_id: str | None
    pid_namespace: int | None
    pid: int
    start_ticks: int | None
    hostname: str

    @classmethod
    def of_this_process(cls) -> OwnerIdentity:
        """Read it from the system; None where the system does not say."""
        return _identity_of(os.getpid())

    def may_live(self) -> bool:
        """True unless no process here has this id and start; a zombie has ended."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return False
        except OSError:
            return True
        fields = text.rpartition(")")[2].split()
        if fields[0] in ("Z", "X"):
            return False
        return self.start_ticks is None or int(fields[19]) == self.start_ticks


@lru_cache(maxsize=1)
def _identity_of(pid: int) -> OwnerIdentity:
    """Read once a process: a launch of many requests writes as many locks. A fork is another."""
    return OwnerIdentity(_boot_id(), _pid_namespace(), pid, _start_ticks(), socket.gethostname())


class RunLock:
    """The held lock of a run; let go by `release` or by the end of the process."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self.path = path

    @classmethod
    def acquire(cls, path: Path, *, faults: Faults = NO_FAULTS) -> RunLock:
        """Create the lock file of a new run and hold it.

        Waits while somebody else holds it: on a file that was just made that is a reader which
        asks whether the run is alive, and that takes microseconds.

        Raises:
            OSError: the file cannot be made or locked.
        """
        fd = open_lock_file(path, faults)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            identity = {"schema": LOCK_SCHEMA, **asdict(OwnerIdentity.of_this_process())}
            write_lock_file(fd, orjson.dumps(identity) + b"\n", faults)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd, path)

    @classmethod
    def try_acquire(cls, path: Path, *, faults: Faults = NO_FAULTS) -> RunLock | None:
        """Hold a lock that others may hold; None where one does.

        A reader that asks whether somebody holds it does so for microseconds: that is waited for.

        Raises:
            OSError: the file cannot be made or locked.
        """
        fd = open_lock_file(path, faults)
        try:
            for pause_s in (*_PATIENCE_S, None):
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if pause_s is None:
                        os.close(fd)
                        return None
                    time.sleep(pause_s)
            identity = {"schema": LOCK_SCHEMA, **asdict(OwnerIdentity.of_this_process())}
            write_lock_file(fd, orjson.dumps(identity) + b"\n", faults)
        except BaseException:
            os.close(fd)
            raise
        return cls(fd, path)

    def release(self) -> None:
        """Let go. Safe to call twice. The file stays, with the name of its last owner."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_alive(path: Path) -> bool:
    """True where some process holds the lock; False where none does or there is no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def read_owner(path: Path) -> OwnerIdentity | None:
    """Read who holds or last held a lock; None where the file does not say."""
    try:
        data = orjson.loads(read_plain(path, _MAX_IDENTITY_BYTES))
        return OwnerIdentity(
            data["boot_id"],
            data["pid_namespace"],
            int(data["pid"]),
            data["start_ticks"],
            str(data["hostname"]),
        )
    except (OSError, KeyError, TypeError, ValueError, OverflowError):
        return None


def network_file_system(folder: Path) -> str | None:
    """Name the network file system that a folder lies on; None for a local or unknown one.

    There, `flock` may not reach other machines and a sync may not reach a disk.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "statfs") or not Path("/proc/self").exists():
        return None
    buffer = ctypes.create_string_buffer(512)
    if libc.statfs(os.fsencode(folder), buffer) != 0:
        return None
    # On 64-bit Linux the first member of `struct statfs` is `f_type`, a long.
    magic = int.from_bytes(buffer.raw[:8], "little") & 0xFFFFFFFF
    return NETWORK_FILE_SYSTEMS.get(magic)


def _boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _pid_namespace() -> int | None:
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return None


def _start_ticks() -> int | None:
    try:
        stat = Path("/proc/self/stat").read_text()
    except OSError:
        return None
    # The command may hold spaces and parentheses; the start time is field 22.
    return int(stat.rpartition(")")[2].split()[19])
