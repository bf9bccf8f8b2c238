"""Find and end what sessions of a dead run left on this machine, by their tokens."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.components.environment import Leftover
from steelyard.environments import cgroups
from steelyard.environments.process_trees import end_marked, find_marked
from steelyard.environments.session_folders import find_folders
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
