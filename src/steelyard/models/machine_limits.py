"""What this user's processes on one machine share of an endpoint: its rates, and its 429s.

One small file, mapped by all, a slot for each endpoint. Rates are shared whole: of two processes
with `rpm: 60` for one key each minute sees 60 calls, not 120. Of the adaptive limit the decreases
are: a 429 to one is a 429 to all, and who comes later starts where the others are.

A lock that is not free at once, a file that cannot be had, another boot: then a process goes by
what it knows alone. No call waits for the file, and none fails over it.
"""

from __future__ import annotations

import fcntl
import hmac
import logging
import mmap
import os
import secrets
import stat
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from steelyard.components.clock import Clock
from steelyard.models.adaptive import SHRINK, AdaptiveLimit
from steelyard.models.rates import Bucket

log = logging.getLogger(__name__)

FILE_NAME: Final = "steelyard-limits-1"
SLOTS: Final = 1023
KNOWN_S: Final = 60.0
"""What was learnt longer ago says nothing to those who come."""

_HEAD: Final = struct.Struct("8s16s16s24x")
_SLOT: Final = struct.Struct("8sddddddQ")
"""Tag; last use; level and moment of the requests, of the tokens; adaptive level; decreases."""
_EPOCH: Final = struct.Struct("Q")
_MAGIC: Final = b"limits/1"
_PROBES: Final = 16
_TRIES, _TRY_S = 20, 0.0002
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_USED, _LEVEL = 1, 6
REQUESTS, TOKENS = 2, 4
"""Where in a slot the level of each rate stands, its moment behind it."""


class MachineTable:
    """The file, mapped; `opened` gives one."""

    def __init__(self, fd: int, clock: Clock) -> None:
        self._fd = fd
        self._clock = clock
        size = _SLOT.size * (SLOTS + 1)
        with self.locked():
            if os.fstat(fd).st_size < size:
                os.truncate(fd, size)
            self._map = mmap.mmap(fd, size)
            magic, boot, self._salt = _HEAD.unpack_from(self._map)
            if (magic, boot) != (_MAGIC, _boot_id()):
                self._salt = secrets.token_bytes(16)
                self._map[:] = bytes(size)
                _HEAD.pack_into(self._map, 0, _MAGIC, _boot_id(), self._salt)

    @classmethod
    def opened(cls, clock: Clock, folder: Path | None = None) -> MachineTable | None:
        """Open this user's table, made where there is none; None where there can be none."""
        try:
            fd = _open(folder or _folder())
        except OSError as error:
            log.debug("limits of endpoints are this process's alone: %s", error)
            return None
        try:
            return cls(fd, clock)
        except (OSError, ValueError) as error:
            os.close(fd)
            log.debug("limits of endpoints are this process's alone: %s", error)
            return None

    def slot(self, key: object) -> Slot:
        """Give the slot of an endpoint; nobody can tell the key from the file."""
        digest = hmac.digest(self._salt, repr(key).encode("utf-8", "surrogatepass"), "sha256")
        return Slot(self, digest[:8], int.from_bytes(digest[8:12], "big") % SLOTS)

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the file for a moment; False where others hold it for longer than one."""
        is_held = False
        for _ in range(_TRIES):
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_TRY_S)  # 4 ms at most, all together
            else:
                is_held = True
                break
        try:
            yield is_held
        finally:
            if is_held:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def find(self, tag: bytes, first: int) -> int:
        """Find a tag's place, or make one: of those it may have, the one unused for longest."""
        places = [_SLOT.size * (1 + (first + n) % SLOTS) for n in range(_PROBES)]
        found = [_SLOT.unpack_from(self._map, place) for place in places]
        for place, slot in zip(places, found, strict=True):
            if slot[0] == tag:
                return place
        place = min(zip(places, found, strict=True), key=lambda pair: pair[1][_USED])[0]
        _SLOT.pack_into(self._map, place, tag, self.now_s(), *([0.0] * 5), 0)
        return place

    def read(self, place: int) -> list[Any]:
        """Give a slot's fields."""
        return list(_SLOT.unpack_from(self._map, place))

    def write(self, place: int, fields: list[Any]) -> None:
        """Replace a slot's fields, its use noted."""
        fields[_USED] = self.now_s()
        _SLOT.pack_into(self._map, place, *fields)

    def epoch(self, place: int) -> int:
        """Give how many decreases a slot has seen; without the lock, for every call."""
        return int(_EPOCH.unpack_from(self._map, place + _SLOT.size - _EPOCH.size)[0])

    def now_s(self) -> float:
        """Seconds that all processes of the machine count alike."""
        return self._clock.monotonic()

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()
        os.close(self._fd)


class Slot:
    """One endpoint's place in the table."""

    def __init__(self, table: MachineTable, tag: bytes, first: int) -> None:
        self.table = table
        self._tag = tag
        self._first = first
        self._place: int | None = None
        with table.locked() as is_held:
            if is_held:
                self._place = table.find(tag, first)

    @contextmanager
    def fields(self) -> Iterator[list[Any] | None]:
        """Give the fields to be changed, written at the end; None: nobody must."""
        with self.table.locked() as is_held:
            if not is_held:
                yield None
                return
            place = self._place = self.table.find(self._tag, self._first)
            fields = self.table.read(place)
            yield fields
            self.table.write(place, fields)

    @property
    def epoch(self) -> int:
        """How many decreases it has seen."""
        return 0 if self._place is None else self.table.epoch(self._place)


class MachineBucket:
    """A `Bucket` whose level is that of all processes."""

    def __init__(self, bucket: Bucket, slot: Slot, part: int) -> None:
        self._bucket = bucket
        self._slot = slot
        self._part = part

    def take(self, units: float, now_s: float) -> float:
        """Reserve units and give the seconds to wait before they may be used."""
        with self._shared(now_s):
            return self._bucket.take(units, now_s)

    def settle(self, extra_units: float, now_s: float) -> None:
        """Correct a reservation: positive where more was used than reserved."""
        with self._shared(now_s):
            self._bucket.settle(extra_units, now_s)

    @contextmanager
    def _shared(self, now_s: float) -> Iterator[None]:
        with self._slot.fields() as fields:
            part = self._part
            if fields is not None and 0.0 < fields[part + 1] <= now_s:
                self._bucket.restore(fields[part], fields[part + 1])
            yield
            if fields is not None:
                fields[part : part + 2] = self._bucket.state


class MachineLimit(AdaptiveLimit):
    """An adaptive limit that shrinks when any process of the machine is told 429."""

    def __init__(self, maximum: int, slot: Slot) -> None:
        super().__init__(maximum)
        self._slot = slot
        self._seen = slot.epoch
        with slot.fields() as fields:
            if fields is not None and fields[_LEVEL] > 0:
                if slot.table.now_s() - fields[_USED] <= KNOWN_S:
                    self._level = min(self._level, max(1.0, fields[_LEVEL]))
                fields[_LEVEL] = self._level

    @property
    def allowed(self) -> int:
        """Calls allowed at once now, from 1 to the maximum."""
        epoch = self._slot.epoch
        if epoch != self._seen:
            self._seen = epoch
            self._level = max(1.0, self._level * SHRINK)
            self._epoch += 1
        return int(self._level)

    def throttled(self, epoch: int) -> None:
        """Take note of a 429 to a call that began in `epoch`; tell the others, once."""
        before = self._epoch
        super().throttled(epoch)
        if self._epoch == before:
            return
        with self._slot.fields() as fields:
            if fields is not None:
                fields[_LEVEL] = self._level
                fields[-1] = int(fields[-1]) + 1
        self._seen = self._slot.epoch


def _open(folder: Path) -> int:
    """Open the file of nobody else.

    Raises:
        OSError: it is somebody else's, no file, or cannot be made.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(folder / f"{FILE_NAME}-{os.geteuid()}", flags, 0o600)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        os.close(fd)
        raise PermissionError(f"{FILE_NAME} in {folder} is not this user's alone")
    return fd


def _folder() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) if runtime and Path(runtime).is_dir() else Path(tempfile.gettempdir())


def _boot_id() -> bytes:
    """Tell boots apart: monotonic seconds of another one mean nothing."""
    try:
        return bytes.fromhex(_BOOT_ID.read_text("ascii").strip().replace("-", ""))[:16].ljust(16)
    except (OSError, ValueError):
        return b"?" * 16
