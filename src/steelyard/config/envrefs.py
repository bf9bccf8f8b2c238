"""Replace whole-field `${NAME}` references by the variables' values.

Nowhere a part of a field: a half-expanded secret must not slip into a request. `$${` writes a
literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from steelyard.config.errors import Problem, Where
from steelyard.config.secret_names import holds_secrets, is_secret_name
from steelyard.config.source import FieldPath, Node, map_scalars, path_text, walk

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OPENING = re.compile(r"(?<!\$)\$\{")
_KEYLESS = "a server without keys needs none; otherwise export the key"


def referred_name(value: object) -> str | None:
    """Give the name of the variable that a field refers to; None where it is no reference."""
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else None


def expand(
    root: Node, environ: Mapping[str, str], problems: list[Problem], warnings: list[Problem]
) -> Node:
    """Copy a tree with its references replaced, and with `$${` as `${`.

    Expanded values are text that is parsed as the field's type later. An unset variable and a
    reference inside other text are problems; an empty variable is one for a model's `id` and
    `base_url`, a warning for a key. A reference with a problem becomes None.
    """
    for path, node in walk(root):
        if isinstance(node.value, dict):
            problems += [_in_key(node, path, key) for key in node.value if _OPENING.search(key)]

    def change(path: FieldPath, node: Node) -> Node:
        if not isinstance(node.value, str) or "${" not in node.value:
            return node
        return _expanded(path, node, environ, problems, warnings)

    return map_scalars(root, change)


def _expanded(
    path: FieldPath,
    node: Node,
    environ: Mapping[str, str],
    problems: list[Problem],
    warnings: list[Problem],
) -> Node:
    where = node.origin.where
    found = _REFERENCE.fullmatch(node.value)
    if not found:
        if _OPENING.search(node.value):
            problems.append(_partial(node.value, where))
            return Node(None, node.origin)
        return Node(node.value.replace("$${", "${"), node.origin)
    name = found[1]
    origin = replace(node.origin, variable=name, is_text=True)
    value = environ.get(name)
    if value is None:
        problems.append(
            Problem(
                f"${{{name}}} is not set",
                where,
                remedy=f"export {name}, or write $${{{name}}} for a literal ${{{name}}}",
            )
        )
        return Node(None, origin)
    if value == "":
        if path[-2:] in (("model", "id"), ("model", "base_url")):
            problems.append(
                Problem(
                    f"${{{name}}} is empty, and a model needs its {path[-1]}",
                    where,
                    remedy=f"export {name} with a value",
                )
            )
            return Node(None, origin)
        if path and _is_secret(path):
            warnings.append(Problem(f"${{{name}}} is empty", where, remedy=_KEYLESS))
            if path[-2:] == ("model", "api_key"):
                return Node(None, origin)
    return Node(value, origin)


def _is_secret(path: FieldPath) -> bool:
    names = [step for step in path if isinstance(step, str)]
    return any(holds_secrets(name) for name in names[:-1]) or (
        bool(names) and is_secret_name(names[-1])
    )


def _partial(text: str, where: Where) -> Problem:
    names = re.findall(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", text)
    one = names[0] if names else "NAME"
    if names:
        message = f"${{{one}}} stands inside other text"
        remedy = (
            f"a reference takes up the whole field: put all of the text into one variable, "
            f"or write $${{{one}}} for a literal ${{{one}}}"
        )
    else:
        message = "`${` begins no reference of the form ${NAME}"
        remedy = "names are letters, digits and `_`; write $${ for a literal ${"
    return Problem(message, where, remedy)


def _in_key(node: Node, path: FieldPath, key: str) -> Problem:
    where = node.value[key].origin.key_where
    return Problem(
        "a key cannot be a reference",
        Where(where.file, where.line, where.column, path_text((*path, key))),
        remedy="references stand in values; write the key out",
    )
