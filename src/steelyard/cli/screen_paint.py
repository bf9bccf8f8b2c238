"""Turn lines into what a terminal must be sent so that it shows them. Pure.

Only lines that changed are sent, in one synchronised update, so that nothing flickers on a slow
line. The lines stand where the cursor was; what is said goes above them and scrolls away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from rich.cells import cell_len

from steelyard.cli.screen import Line

_COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "title": "1",
        "bar": "32",
        "rest": "2",
        "bad": "31",
        "warn": "33",
        "dim": "2",
        "key": "1;36",
    }
)

_BEGIN: Final = "\x1b[?2026h"
"""What follows is shown all at once."""
_END: Final = "\x1b[?2026l"
_NO_WRAP: Final = "\x1b[?7l"
"""No line wraps, whatever a terminal makes of a character's width."""
_WRAP: Final = "\x1b[?7h"
HIDE_CURSOR: Final = "\x1b[?25l"
SHOW_CURSOR: Final = "\x1b[?25h"
_ERASE_LINE: Final = "\x1b[K"
_ERASE_BELOW: Final = "\r\x1b[J"


class Painter:
    """Knows what stands on the terminal. The cursor rests at the start of its last line."""

    def __init__(self, *, colours: bool) -> None:
        self._colours = colours
        self._shown: list[str] = [""]
        self._cells: list[int] = [0]
        self._width = 0
        self._is_placed = False

    def frame(self, lines: Sequence[Line], width: int, above: Sequence[str] = ()) -> str:
        """Say what to send.

        Args:
            lines: what is to stand there, each no wider than `width`.
            width: of the terminal, in cells.
            above: what scrolls away above it: texts without control characters but line ends.
        """
        sent = [] if self._is_placed else [HIDE_CURSOR, _ERASE_BELOW]
        self._is_placed = True
        if width != self._width:
            sent.append(self._erase(width))
            self._width = width
        if above:
            sent.append(self._erase(width))
            sent += [text.replace("\n", "\r\n") + "\r\n" for text in above]
        wanted = [self._painted(line) for line in lines] or [""]
        sent.append(self._replace(wanted))
        self._cells = [sum(cell_len(span.text) for span in line) for line in lines] or [0]
        body = "".join(sent)
        return f"{_BEGIN}{body}{_END}" if body else ""

    def leave(self) -> str:
        """Say what to send to take everything away and give the cursor back."""
        if not self._is_placed:
            return ""
        body = self._erase(self._width)
        self._is_placed = False
        return f"{body}{SHOW_CURSOR}"

    def _erase(self, width: int) -> str:
        """Back to the first line, nothing below; `width` may be new, lines wrapped meanwhile."""
        if self._shown == [""]:
            return ""
        above = sum(-(-max(1, cells) // max(1, width)) for cells in self._cells[:-1])
        self._shown, self._cells = [""], [0]
        return _up(above) + _ERASE_BELOW

    def _replace(self, wanted: list[str]) -> str:
        shown, sent = self._shown, []
        if len(wanted) > len(shown):
            sent.append("\r\n" * (len(wanted) - len(shown)))
            shown = shown + [""] * (len(wanted) - len(shown))
        elif len(wanted) < len(shown):
            gone = len(shown) - len(wanted)
            sent += [_up(gone - 1), _ERASE_BELOW, _up(1)]
            shown = shown[: len(wanted)]
        row = last = len(wanted) - 1
        for index, (old, new) in enumerate(zip(shown, wanted, strict=True)):
            if old != new:
                sent += [_move(row, index), "\r", new, _ERASE_LINE]
                row = index
        if row != last or sent:
            sent += [_move(row, last), "\r"]
        self._shown = wanted
        return f"{_NO_WRAP}{''.join(sent)}{_WRAP}" if sent else ""

    def _painted(self, line: Line) -> str:
        if not self._colours:
            return "".join(span.text for span in line)
        return "".join(
            f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if style and text else text
            for text, style in line
        )


def _up(rows: int) -> str:
    return f"\x1b[{rows}A" if rows > 0 else ""


def _move(row: int, to: int) -> str:
    return _up(row - to) if to <= row else f"\x1b[{to - row}B"
