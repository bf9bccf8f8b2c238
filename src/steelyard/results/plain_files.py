"""Read files of a run that anyone may have put there: plain files only, never without a bound.

A FIFO would be waited for without end, a device's own opening may have effects, and a file of
holes may be a terabyte long.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024
"""A JSON document of a run, and what a person is shown of a file, has no more."""
MAX_KEPT_FILE_BYTES: Final = 512 * 1024 * 1024
"""A trajectory or an answer that is taken into another run has no more."""
_CHUNK_BYTES: Final = 1024 * 1024


def open_plain(path: Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading; never waits for a FIFO, never opens a device.

    Args:
        path: the file.
        follow: whether the path's last part may be a link.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    _require_plain(path.stat(follow_symlinks=follow).st_mode, path)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    fd = os.open(path, flags)
    try:
        _require_plain(os.fstat(fd).st_mode, path)  # it may be another one by now
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def read_plain(path: Path, max_bytes: int, *, follow: bool = True) -> bytes:
    """Read a regular file whole.

    Raises:
        OSError: it cannot be read, is no regular file, or has more than `max_bytes`.
    """
    pieces, size = [], 0
    with open_plain(path, follow=follow) as file:
        # Never `read(max_bytes)`: that takes as much memory first, however small the file is.
        piece_bytes = min(os.fstat(file.fileno()).st_size + 1, _CHUNK_BYTES)
        while piece := file.read(piece_bytes):
            size += len(piece)
            if size > max_bytes:
                raise OSError(errno.EFBIG, f"it has more than {max_bytes} bytes", str(path))
            pieces.append(piece)
    return b"".join(pieces)


def sha256_of(path: Path, max_bytes: int, *, follow: bool = True) -> str:
    """Digest a regular file in little memory, as hex digits.

    Raises:
        OSError: as `read_plain`.
    """
    digest, size = hashlib.sha256(), 0
    with open_plain(path, follow=follow) as file:
        while chunk := file.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > max_bytes:
                raise OSError(errno.EFBIG, f"it has more than {max_bytes} bytes", str(path))
            digest.update(chunk)
    return digest.hexdigest()


def _require_plain(mode: int, path: Path) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
