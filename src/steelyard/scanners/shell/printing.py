"""What a command prints, where its words alone say so: `echo`, `printf`, decoders of known text."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from steelyard.scanners.acts import Command

MAX_CHARS: Final = 64 * 1024
_HEX: Final = re.compile(r"\\x([0-9a-fA-F]{2})|\\([0-7]{3})|\\(n)|\\(t)")


def printed(command: Command) -> str | None:
    """Give the text a command prints; None where that cannot be known."""
    if command.name == "echo":
        args = list(command.args)
        escapes = False
        while args and re.fullmatch(r"-[neE]+", args[0]):
            escapes = escapes or "e" in args.pop(0)
        text = " ".join(args)
        return (_unescaped(text) if escapes else text) + "\n"
    if command.name == "printf" and command.args:
        form, *values = [one for one in command.args if one != "--"] or [""]
        for value in values[:50]:
            form = re.sub(r"%(?:s|b|q|d)", lambda _, value=value: value, form, count=1)  # type: ignore[misc]
        return _unescaped(form)
    if command.name == "seq" and command.args and all(one.isdecimal() for one in command.args):
        numbers = [int(one[:6]) for one in command.args]
        first, last = (numbers[0], numbers[-1]) if len(numbers) > 1 else (1, numbers[0])
        return "\n".join(str(one) for one in range(first, min(last, first + 50) + 1))
    if command.name == "cat" and command.operands and set(command.operands) == {"/dev/null"}:
        return ""
    if command.stdin is None or len(command.stdin) > MAX_CHARS:
        return None
    if command.name in ("cat", "tee") and (command.name == "tee" or not command.operands):
        return command.stdin
    if is_decoder(command):
        return _decoded(command)
    if command.name == "rev":
        return "\n".join(line[::-1] for line in command.stdin.split("\n"))
    return None


def is_decoder(command: Command) -> bool:
    """True where a command turns encoded text into what it stands for."""
    if command.name in ("base64", "base32", "gbase64"):
        return command.has("d", "--decode", "-D", "-di")
    if command.name == "openssl":
        return "-d" in command.args and ("base64" in command.args or "-a" in command.args)
    return command.name == "xxd" and command.has("r")


def _decoded(command: Command) -> str | None:
    text = "".join((command.stdin or "").split())
    try:
        if command.name == "xxd":
            data = binascii.unhexlify(text)
        elif command.name == "base32":
            data = base64.b32decode(text)
        else:
            data = base64.b64decode(text + "=" * (-len(text) % 4))
    except (ValueError, binascii.Error):
        return None
    return data.decode("utf-8", "replace")


def _unescaped(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[2]:
            return chr(int(found[2], 8) & 0xFF)
        return "\n" if found[3] else "\t"

    return _HEX.sub(one, text)
