"""Matrix keys: what people call a cell. A key is made of parts and never taken apart again."""

from __future__ import annotations


def san(part: str) -> str:
    """Give the form that a part has in a key: stripped, each ASCII space a dash, no more."""
    return part.strip().replace(" ", "-")


def matrix_key(pack: str, agent: str, model: str | None, repeat: int) -> str:
    """Join the parts of a cell.

    Args:
        pack: the pack ref as written.
        agent: the agent's label, or its deployment where it has none.
        model: the model of the axis; None where there is no axis.
        repeat: counted from 1.
    """
    parts = [san(pack), san(agent), *([] if model is None else [san(model)]), str(repeat)]
    return "/".join(parts)
