"""The boundary before standard output and error: what it lets through, and how it is told apart."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from steelyard.cli.streams import RedactedStream


def test_bytes_are_refused_as_by_every_text_stream() -> None:
    stream = RedactedStream(io.StringIO())
    with pytest.raises(TypeError):
        stream.write(b"")  # type: ignore[arg-type]


@pytest.mark.integration
def test_help_is_plain_text() -> None:
    for arguments in (["--help"], ["run", "--help"]):
        shown = subprocess.run(
            [sys.executable, "-m", "steelyard", *arguments], capture_output=True, check=True
        )
        assert shown.stdout.startswith(b"Usage: steelyard"), shown.stdout[:80]


@pytest.mark.integration
@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">&- 2>&- <&-", ">/dev/full", "2>/dev/full"])
def test_a_stream_that_cannot_be_written_is_no_traceback(redirect: str) -> None:
    ended = subprocess.run(
        ["sh", "-c", f'exec "$0" -m steelyard list benchmark {redirect}', sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in ended.stderr
    assert ended.returncode in ((1, 120) if redirect == ">/dev/full" else (0,)), ended
