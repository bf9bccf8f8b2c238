"""The public API as text: every name of `steelyard` with its signature or its fields.

`python -m tests.sdk.api_text` writes `api.txt` anew; do so only where a change is meant.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import steelyard

FILE = Path(__file__).with_name("api.txt")
MAX_CHARS = 300
"""Of a signature on one line."""
COMMAND = "python -m tests.sdk.api_text"


def api_text() -> str:
    """Give the whole of it."""
    lines: list[str] = []
    for name in sorted(steelyard.__all__):
        lines += [*_lines(name, getattr(steelyard, name)), ""]
    return "\n".join(lines)


def _lines(name: str, value: Any) -> Iterator[str]:
    if name == "__version__":
        yield f"{name}: {type(value).__name__}"
    elif not inspect.isclass(value):
        if inspect.isfunction(value):
            kind = "async def" if inspect.iscoroutinefunction(value) else "def"
            yield f"{kind} {name}{_signature(value)}"
        else:
            yield f"{name} = {_alias(value)}"
    elif issubclass(value, enum.Enum):
        yield f"enum {name}"
        yield from (f"    {member.name} = {member.value!r}" for member in value)
    else:
        bases = ", ".join(b.__name__ for b in value.__bases__ if b is not object)
        kind = "dataclass" if dataclasses.is_dataclass(value) else "class"
        yield f"{kind} {name}({bases})" if bases else f"{kind} {name}"
        yield from (f"    {line}" for line in sorted(_members(value)))


def _members(value: type[Any]) -> Iterator[str]:
    listed = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    fields = {each.name for each in listed}
    for number, each in enumerate(each for each in listed if not each.name.startswith("_")):
        default = "" if _is_required(each) else " = …"
        word = " (by name)" if each.kw_only else ""
        yield f"field {number:02d} {each.name}: {each.type}{default}{word}"
    for name, member in list(vars(value).items()):
        if name in fields or (name.startswith("_") and name != "_repr_html_"):
            continue
        if isinstance(member, property):
            yield f"property {name}: {inspect.signature(member.fget).return_annotation}"  # type: ignore[arg-type]
        elif isinstance(member, classmethod):
            yield f"classmethod {name}{_signature(member.__func__)}"
        elif inspect.isfunction(member):
            kind = "async def" if inspect.iscoroutinefunction(member) else "def"
            yield f"{kind} {name}{_signature(member)}"
        elif name in getattr(value, "__annotations__", {}):
            yield f"{name}: {value.__annotations__[name]}"
    if not fields and "__init__" in vars(value) and not getattr(value, "_is_protocol", False):
        yield f"def __init__{_signature(value.__init__)}"


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _signature(function: Any) -> str:
    # Annotations are text already; only their quotes go.
    text = re.sub(r"'([^']*)'", r"\1", str(inspect.signature(function)))
    if len(text) <= MAX_CHARS:
        return text
    parameters = [str(each) for each in inspect.signature(function).parameters.values()]
    return (
        "(\n    " + "\n    ".join(re.sub(r"'([^']*)'", r"\1", each) for each in parameters) + "\n)"
    )


def _alias(value: Any) -> str:
    return " | ".join(sorted(each.__name__ for each in typing.get_args(value))) or repr(value)


if __name__ == "__main__":
    FILE.write_text(api_text())
    sys.stdout.write(f"{FILE}\n")
