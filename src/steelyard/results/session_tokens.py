"""The tokens of an execution's sessions: its own token and a suffix for each.

What a session leaves on a machine carries its token; the journal holds the execution's before
anything is opened.
"""

from __future__ import annotations

from typing import Final, Literal

Role = Literal["task", "evaluator", "files"]

AGENT_SUFFIX: Final = "-a"
SCORER_SUFFIX: Final = "-s"
FILES_SUFFIX: Final = "-f"
"""A folder of the host in which an execution puts what it collects; no session."""

_ROLES: Final[dict[str, Role]] = {
    AGENT_SUFFIX: "task",
    SCORER_SUFFIX: "evaluator",
    FILES_SUFFIX: "files",
}


def session_tokens(execution_token: str) -> dict[str, Role]:
    """Give every token under which an execution may leave something, with what it is."""
    return {execution_token + suffix: role for suffix, role in _ROLES.items()}


def split_token(token: str) -> tuple[str, Role] | None:
    """Give the execution's token and the role; None for a token of another form."""
    stem, role = token[:-2], _ROLES.get(token[-2:])
    return None if role is None or not stem else (stem, role)
