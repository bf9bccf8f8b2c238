"""Say what is wrong with YAML that cannot be parsed: the line with a caret, and the likely cause.

A line is quoted only as far as it can hold no secret: a file that is not well formed has not been
looked through for them yet.
"""

from __future__ import annotations

import re
from typing import Any, Final

from steelyard.config.errors import Where
from steelyard.config.secret_names import holds_secrets, is_secret_name

_MAX_SHOWN: Final = 100
_KEY: Final = re.compile(r"""["']?([\w.\-]+)["']?\s*:""")
_CREDENTIALS: Final = re.compile(
    r"://\S*[@?]|\b(?i:bearer|basic)\s|\bsk-|(?=[\w+/=-]*\d)(?=[\w+/=-]*[A-Za-z])[\w+/=-]{12,}"
)
"""What may be a secret wherever it stands: nobody knows yet what the fields are."""
_NO_SPACE: Final = re.compile(r"^\s*(?:- )?\s*([A-Za-z_][\w.\-]*):([^\s:/][^:]*)$")


def fault_of(error: Any, text: str, file: str) -> tuple[str, Where, str | None]:
    """Give message, place and remedy for a parser's marked error.

    Args:
        error: a `MarkedYAMLError`.
        text: the document.
        file: how messages name it.
    """
    lines = text.split("\n")
    mark = _mark(error)
    said = " ".join(str(part) for part in (error.context, error.problem) if part)
    # A key that begins with `*`, `&` or `!` is taken for one of these; its place is enough.
    said = re.sub(r"(alias|anchor|handle) (['\"]).*\2", r"\1", said, flags=re.DOTALL)
    message = f"not well-formed YAML: {said}"
    if mark is None:
        return message, Where(file), None
    quoted = _quoted(lines, mark.line, mark.column) if _may_quote(error, lines, mark) else []
    hint = _hint(error, lines, mark)
    return "\n".join([message, *quoted]), Where(file, mark.line + 1, mark.column + 1), hint


def _mark(error: Any) -> Any:
    """Where the fault is: what was never closed is named where it opens."""
    if error.context_mark is not None and _is_unclosed(error):
        return error.context_mark
    return error.problem_mark or error.context_mark


def _is_unclosed(error: Any) -> bool:
    context, problem = str(error.context or ""), str(error.problem or "")
    if "quoted scalar" in context:
        return "end of stream" in problem
    return context in (
        "while parsing a flow sequence",
        "while parsing a flow mapping",
        "while scanning a simple key",
    )


def _may_quote(error: Any, lines: list[str], mark: Any) -> bool:
    """False where the line goes on with something that began in a line that cannot be shown."""
    began = error.context_mark
    if began is None or began.line >= mark.line:
        return True
    return _shown_to(lines, began.line) == min(len(lines[began.line]), _MAX_SHOWN)


def _quoted(lines: list[str], line: int, column: int) -> list[str]:
    """The source line with a caret below, indented as a detail of the message."""
    if line >= len(lines):
        return []
    source = lines[line].rstrip("\r").replace("\t", " ")
    end = _shown_to(lines, line)
    shown = source[:end] + ("…" if end < len(source) else "")
    if not shown.strip() or shown == "…":
        return []
    number = str(line + 1)
    quoted = [f"  {number} | {shown}"]
    if column <= end:
        quoted.append(f"  {' ' * len(number)} | {' ' * column}^")
    return quoted


def _shown_to(lines: list[str], line: int) -> int:
    """How many characters of a line can be shown."""
    if any(is_secret_name(key) or holds_secrets(key) for key in _holders(lines, line)):
        return 0
    source = lines[line]
    end = min(len(source), _MAX_SHOWN)
    for found in _KEY.finditer(source):
        if is_secret_name(found[1]) or holds_secrets(found[1]):
            end = min(end, found.end())
    if found_at := _CREDENTIALS.search(source):
        end = min(end, found_at.start())
    return end


def _holders(lines: list[str], line: int) -> list[str]:
    """Keys that the line stands under, by indentation; a quoted text may go on for lines."""
    keys = []
    depth = _indent(lines[line])
    for above in range(line - 1, -1, -1):
        source = lines[above]
        if not source.strip() or source.lstrip().startswith("#"):
            continue
        indent = _indent(source)
        found = _KEY.findall(source)
        if indent < depth or not found:
            keys += found
            depth = min(depth, indent) if found else depth
        if depth == 0 and found:
            break
    return keys


def _indent(source: str) -> int:
    return len(source) - len(source.lstrip(" \t-"))


def _hint(error: Any, lines: list[str], mark: Any) -> str | None:
    context, problem = str(error.context or ""), str(error.problem or "")
    source = lines[mark.line] if mark.line < len(lines) else ""
    if _has_tab(source) or (mark.line and _has_tab(lines[mark.line - 1])):
        return "use spaces: YAML takes no tabs for indentation"
    if "simple key" in context:
        return "write `key: value`, with a colon and a space after the key"
    if _is_unclosed(error):
        if "quoted" in context:
            return "close the quote that opens there"
        bracket = "[ … ]" if "sequence" in context else "{ … }"
        return f"close what opens there: {bracket}, with commas between"
    if (near := _unspaced(lines, mark.line)) is not None:
        return f"write a space after the colon on line {near[0]}: `{near[1]}: …`"
    if "mapping values are not allowed" in problem:
        if _KEY.search(source) and source[: mark.column].count(":") == 0:
            return _indentation(lines, mark.line)
        return "put the value in quotes: it holds `: `"
    if "<block" in problem or "block" in context:
        return _indentation(lines, mark.line)
    if "cannot start any token" in problem or "alias" in problem or "directive" in problem:
        return "put the value in quotes: it begins with a sign that means something in YAML"
    if "escape" in problem:
        return "use single quotes, in which a backslash is a backslash"
    return None


def _has_tab(source: str) -> bool:
    return "\t" in source[: len(source) - len(source.lstrip())]


def _unspaced(lines: list[str], line: int) -> tuple[int, str] | None:
    for number in (line, line - 1):
        if 0 <= number < len(lines) and (found := _NO_SPACE.match(lines[number].rstrip("\r"))):
            return number + 1, found[1]
    return None


def _indentation(lines: list[str], line: int) -> str:
    above = next((n for n in range(line - 1, -1, -1) if lines[n].strip()), None)
    if above is not None and ":" not in lines[above] and not lines[above].lstrip().startswith("-"):
        return f"line {above + 1} has no colon: write `key: value`"
    if above is None or line >= len(lines) or _spaces(lines[above]) == _spaces(lines[line]):
        return "look at the indentation: fields of one mapping stand below each other"
    return (
        f"the line above is indented differently ({_spaces(lines[above])} there, "
        f"{_spaces(lines[line])} here): fields of one mapping stand below each other"
    )


def _spaces(source: str) -> str:
    count = len(source) - len(source.lstrip(" "))
    return f"{count} space{'' if count == 1 else 's'}"
