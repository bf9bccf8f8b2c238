"""Read what lies beside the records of a run: never what lies elsewhere, never without a bound."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from steelyard.config.errors import Fault
from steelyard.results.layout import attempt_folder
from steelyard.results.plain_files import read_plain

MAX_FILE_BYTES: Final = 64 * 1024 * 1024


class KeptFileUnreadable(Fault):
    """A file that a record names is not to be had; says why in one line."""


def is_kept_of(relative: str, task_id: str, attempt: int) -> bool:
    """True where a path, as it is written, lies in the folder of an attempt.

    A record may be anyone's: what it names is copied to the same place of another run, where
    `attempts.jsonl` and `lock` are that run's own. Links are not looked at.
    """
    folder = attempt_folder(task_id, attempt)
    parts = relative.split("/")
    return (
        relative.startswith(f"{folder}/")
        and "\0" not in relative
        and not {"", ".", ".."}.intersection(parts)
    )


def read_kept(root: Path, relative: str) -> bytes:
    """Read a file that a record names.

    Args:
        root: the run directory.
        relative: the path as the record has it; records may be anyone's.

    Raises:
        KeptFileUnreadable: it is missing, too large, no file, or leads out of the run directory.
    """
    path = root / relative
    try:
        if not path.resolve().is_relative_to(root.resolve()):
            raise KeptFileUnreadable(f"{relative} leads out of the run directory")
        if not path.is_file():
            raise KeptFileUnreadable(f"{relative} is missing")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise KeptFileUnreadable(f"{relative} is larger than {MAX_FILE_BYTES // 2**20} MiB")
        return read_plain(path, MAX_FILE_BYTES)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a circle
        why = getattr(error, "strerror", None) or str(error)
        raise KeptFileUnreadable(f"{relative} cannot be read: {why}") from error
