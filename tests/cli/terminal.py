"""A very small terminal: what stands on it after what was sent."""

from __future__ import annotations

import re

_PIECE = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


class Emulator:
    """Knows the sequences that we send, and raises on any other."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self.rows = [""] * height
        self.row = self.column = 0
        self.scrolled: list[str] = []
        self.has_cursor = self.wraps = True

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            piece = _PIECE.match(text, at)
            assert piece is not None, f"an unknown sequence: {text[at : at + 20]!r}"
            at = piece.end()
            arguments, final, carriage, newline, printed = piece.groups()
            if carriage:
                self.column = 0
            elif newline:
                self._newline()
            elif printed:
                self._print(printed)
            else:
                self._control(arguments, final)

    def _newline(self) -> None:
        if self.row == self.height - 1:
            self.scrolled.append(self.rows.pop(0))
            self.rows.append("")
        else:
            self.row += 1

    def _print(self, text: str) -> None:
        for char in text:
            if self.column == self.width:
                assert self.wraps, "a line of the view is too wide"
                self._newline()
                self.column = 0
            line = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = line[: self.column] + char + line[self.column + 1 :]
            self.column += 1

    def _control(self, arguments: str, final: str) -> None:
        match final:
            case "A":
                self.row = max(0, self.row - int(arguments or 1))
            case "B":
                self.row = min(self.height - 1, self.row + int(arguments or 1))
            case "K":
                self.rows[self.row] = self.rows[self.row][: self.column]
            case "J":
                self.rows[self.row] = self.rows[self.row][: self.column]
                self.rows[self.row + 1 :] = [""] * (self.height - self.row - 1)
            case "h" | "l":
                if arguments == "?25":
                    self.has_cursor = final == "h"
                elif arguments == "?7":
                    self.wraps = final == "h"
            case "m":
                pass
            case _:
                raise AssertionError(f"an unknown sequence: CSI {arguments} {final}")
