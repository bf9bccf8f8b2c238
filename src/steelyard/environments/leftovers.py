"""Find and end what sessions of a dead run left on this machine, by their tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.components.environment import EnvironmentFault, Leftover
from steelyard.components.session_folders import find_folders, kept_folder
from steelyard.environments import cgroups
from steelyard.environments.process_trees import end_marked, find_marked
from steelyard.environments.tree_copy import remove_tree


def find(provider: str, tokens: Sequence[str]) -> list[Leftover]:
    """Find processes, folders and cgroups that carry one of the tokens. Blocking."""
    return [
        *(
            Leftover(provider, process.value, f"process {process.pid}: {process.command}")
            for process in find_marked(tokens)
        ),
        *(Leftover(provider, token, f"folder {path}") for token, path in find_folders(tokens)),
        *(Leftover(provider, token, f"cgroup {path}") for token, path in cgroups.find(tokens)),
    ]


def folder_to_enter(token: str, state: Mapping[str, Any]) -> Path:
    """Give the folder of a kept session. Blocking.

    Raises:
        EnvironmentFault: it is gone, or belongs to somebody else.
    """
    folder = kept_folder(token, str(state.get("folder", "")))
    if folder is None:
        raise EnvironmentFault(f"nothing of {token} is left on this machine, or it is not yours")
    return folder


def end(tokens: Sequence[str]) -> None:
    """End the processes of these tokens, then remove their folders and cgroups. Blocking.

    Raises:
        OSError: something cannot be removed.
    """
    for token in sorted(set(tokens)):
        end_marked(token)
    for _, path in cgroups.find(tokens):
        cgroups.remove(path)
    for _, path in find_folders(tokens):
        remove_tree(path)
