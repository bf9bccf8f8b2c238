"""Single keys from a terminal, and the terminal given back however the process ends."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.cli.screen_keys import keys_in
from tests.project.checkout import ROOT


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"p", ["p"]),
        (b"+-?", ["+", "-", "?"]),
        (b"\x1b[A\x1b[B", []),
        (b"\x1bOP", []),
        (b"\x1b[200~", []),
        (b"\x1bd", []),
        (b"\x1b", []),
        (b"\x1b[1;5Cp", ["p"]),
        (b"\x00\x01\r\n\t", []),
        (b"\xff\xfeq", ["q"]),
        ("ü".encode(), ["ü"]),
    ],
)
def test_keys_are_read_and_sequences_are_not(sent: bytes, keys: list[str]) -> None:
    assert keys_in(sent) == keys


@given(st.binary(max_size=200))
def test_whatever_is_sent_gives_printable_keys(sent: bytes) -> None:
    assert all(key.isprintable() and len(key) == 1 for key in keys_in(sent))


PROGRAM = """
import asyncio, os, sys
from steelyard.cli.live import Live
from steelyard.engine.control import Controls
from tests.cli.showing import progress

async def go():
    live = Live(sys.stderr, Controls())
    live.tick((progress(),))
    await asyncio.sleep(0.4)
    live.tick((progress(),))
    {end}

asyncio.run(go())
"""


@pytest.mark.integration
@pytest.mark.parametrize(
    "end", ["raise RuntimeError('as asked')", "sys.exit(3)", "live.close()", "pass"]
)
def test_the_terminal_is_given_back_however_the_process_ends(end: str) -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM).replace("{end}", end)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=os.environ | {"TERM": "xterm", "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    seen = b""
    while select.select([ours], [], [], 0.2)[0] or child.poll() is None:
        if select.select([ours], [], [], 0)[0]:
            seen += os.read(ours, 65536)
    assert b"running longest" in seen
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")
    after = termios.tcgetattr(theirs)
    assert after[3] == before[3]
    os.close(ours)
    os.close(theirs)
