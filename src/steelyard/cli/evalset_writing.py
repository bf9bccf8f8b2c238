"""Write a document of a set, part by part: to standard output, or whole into a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory

from steelyard.config.errors import BadInput, Fault, Where


class NotWritten(Fault):
    """A file that was asked for could not be written."""


def write_parts(parts: Iterable[str], output: Path | None) -> None:
    """Write parts; each ends with its own line end.

    Raises:
        BadInput: the file cannot be made.
        NotWritten: the disk did not take it; what stood there before still stands.
    """
    from steelyard.cli.output import say

    if output is None:
        for part in parts:
            say(part.removesuffix("\n"))
        return
    write_bytes((part.encode("utf-8", "replace") for part in parts), output)


def write_bytes(parts: Iterable[bytes], output: Path) -> None:
    """Write bytes beside a file and put them in its place; see `write_parts`."""

    def write(beside: Path) -> None:
        with beside.open("xb") as file:
            for part in parts:
                file.write(part)

    write_with(write, output)


def write_with(write: Callable[[Path], None], output: Path) -> None:
    """Let something write a file beside another, then put it in that one's place.

    Raises:
        BadInput: the file cannot be made.
        NotWritten: the disk did not take it; what stood there before still stands.
    """
    from steelyard.cli.report_files import check_writable

    check_writable({"--output": output})
    if output.exists() and not output.is_file():
        _write_into(write, output)
        return
    output = output.resolve() if output.is_symlink() else output
    beside = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        write(beside)
        beside.replace(output)
    except FileExistsError as error:
        raise BadInput(f"{beside} is in the way", where=Where(field="--output")) from error
    except OSError as error:
        raise NotWritten(
            f"{output}: {error.strerror or error}", remedy="free space or choose another file"
        ) from error
    finally:
        beside.unlink(missing_ok=True)


def _write_into(write: Callable[[Path], None], output: Path) -> None:
    """Write into what is no file: `/dev/null`, a pipe; nothing may take its place.

    Raises:
        NotWritten: it did not take it.
    """
    with TemporaryDirectory() as folder:
        whole = Path(folder) / "whole"
        try:
            write(whole)
            with whole.open("rb") as source, output.open("wb") as sink:
                copyfileobj(source, sink)
        except OSError as error:
            raise NotWritten(
                f"{output}: {error.strerror or error}", remedy="choose another file"
            ) from error
