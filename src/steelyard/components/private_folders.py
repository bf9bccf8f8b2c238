"""The private folder of a live process: a Unix socket, and a file whose lock says who lives.

A socket's path may have 107 bytes, so these folders lie in the user's runtime folder or a
temporary one, and a process that is killed leaves its own behind. The owner's file in each is
locked while its process lives; by that lock whoever starts next tells the folders of dead
processes, and removes them.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from steelyard.components.clock import Clock

SOCKET_NAME: Final = "s"
MAX_PATH_BYTES: Final = 103
"""Of a socket: 107 on Linux, 103 on macOS."""
_STALE_AFTER_S: Final = 60.0
"""A folder younger than this may be one whose owner has not locked its file yet."""


class PrivateFolder:
    """A folder that only this user can enter, ours until `remove`; made by `make`."""

    def __init__(self, path: Path, owner_file: str, lock_fd: int) -> None:
        self.path = path
        self._owner_file = owner_file
        self._lock_fd = lock_fd

    @classmethod
    def make(
        cls, prefix: str, clock: Clock, *, owner_file: str = "owner", content: str = ""
    ) -> PrivateFolder:
        """Make one, after those of this prefix that dead processes left were removed. Blocking.

        Args:
            prefix: of its name.
            clock: tells how old those of others are.
            owner_file: the file that is locked.
            content: of that file, for nobody but this user.

        Raises:
            OSError: there is no place for it.
        """
        base = _base(prefix)
        remove_stale(base, prefix, clock, owner_file=owner_file)
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
        try:
            return cls(path, owner_file, hold(path / owner_file, content))
        except BaseException:
            _remove(path, owner_file)
            raise

    @property
    def socket_path(self) -> Path:
        """Where its one socket belongs."""
        return self.path / SOCKET_NAME

    def remove(self) -> None:
        """Remove it, and let go of its lock. Safe to call twice."""
        fd, self._lock_fd = self._lock_fd, -1
        if fd >= 0:
            _remove(self.path, self._owner_file)
            os.close(fd)


def hold(path: Path, content: str) -> int:
    """Write an owner's file, and hold its lock while the descriptor given back is open."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(fd, content.encode())
    except BaseException:
        os.close(fd)
        raise
    return fd


def remove_stale(base: Path, prefix: str, clock: Clock, *, owner_file: str = "owner") -> None:
    """Remove the folders of a prefix that dead processes of this user left behind."""
    before_s = clock.now().timestamp() - _STALE_AFTER_S
    for folder in _own_folders(base, prefix):
        with suppress(OSError):
            if folder.stat().st_mtime < before_s and _is_abandoned(folder / owner_file):
                _remove(folder, owner_file)


def _base(prefix: str) -> Path:
    """Find the folder to make ours in: the user's runtime folder, else a temporary one."""
    for text in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108
        base = Path(text) if text else None
        if base is None or not base.is_absolute() or not base.is_dir():
            continue
        longest = f"{base}/{prefix}{'x' * 8}/{SOCKET_NAME}"
        if len(os.fsencode(longest)) <= MAX_PATH_BYTES and os.access(base, os.W_OK | os.X_OK):
            return base
    raise OSError("there is no folder for its socket that can be written and has a short path")


def _own_folders(base: Path, prefix: str) -> Iterator[Path]:
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            with suppress(OSError):  # it went meanwhile
                if (
                    entry.name.startswith(prefix)
                    and entry.is_dir(follow_symlinks=False)
                    and entry.stat(follow_symlinks=False).st_uid == os.geteuid()
                ):
                    yield Path(entry.path)


def _is_abandoned(owner_file: Path) -> bool:
    """True where nobody holds the lock."""
    try:
        fd = os.open(owner_file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def _remove(folder: Path, owner_file: str) -> None:
    """Remove what we put there and nothing else."""
    for name in (SOCKET_NAME, owner_file):
        with suppress(OSError):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()
