"""The RUN of a command line, the same for all commands.

A run directory; a folder of runs; and, of what lies in the results folder, a run id, the name of
a request or of a group of runs, or `latest`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

LATEST: Final = "latest"
ITS_FORMS: Final = "a run directory, a folder of runs, a run's id, a request's name, or `latest`"
"""For help texts and remedies."""


def run_root(path: Path) -> Path:
    """Give the run directory that RUN means; of several the one that began last, which is noted.

    Raises:
        BadInput: there is none, or several requests have a run of that id.
    """
    from steelyard.cli.output import note
    from steelyard.config.errors import BadInput
    from steelyard.results.newest import newest_of

    found = meant(path)
    newest = newest_of(found)
    if newest is None:
        return found[0]  # whoever reads it says what is wrong with it
    ids = {root.name for root in found}
    if newest.among > 1 and ids == {str(path)}:
        raise BadInput(
            f"{newest.among} requests have a run {str(path)!r}",
            remedy=f"name its folder: {', '.join(map(str, sorted(found)))}",
        )
    if newest.among > 1:
        note(f"the newest of {newest.among} runs: {newest.root}")
    elif newest.root != path:
        note(f"the run {newest.root}")
    return newest.root


def meant(path: Path) -> Sequence[Path]:
    """Give the run directories that RUN may mean, at least one.

    Raises:
        BadInput: there is none.
    """
    from steelyard.config.errors import BadInput
    from steelyard.results.layout import RunFiles
    from steelyard.results.newest import runs_below

    if RunFiles(path).document.exists() or path.is_file():
        return [path]
    if path.is_dir():
        return list(runs_below(path)) or [path]
    results = results_dir()
    runs = list(runs_below(results))
    text = str(path)
    if text == LATEST and runs:
        return runs
    if text == LATEST:
        raise BadInput(f"there is no run below {results}", remedy=f"name {ITS_FORMS}")
    names: dict[str, dict[Path, None]] = {}
    for root in runs:
        relative = root.relative_to(results)
        for part in (relative, *relative.parents):
            # `a/b` and `b` both lead to what lies in b
            for named in {str(part), part.name} - {"", "."}:
                names.setdefault(named, {})[root] = None
    if text in names:
        return list(names[text])
    near = difflib.get_close_matches(text, names, n=1, cutoff=0.7)
    raise BadInput(
        f"no run {text!r}: no such path, and nothing of that name below {results}",
        remedy=f"did you mean {near[0]!r}?" if near else f"name {ITS_FORMS}",
    )


def chosen(path: Path, key: Callable[[Path], tuple[bool, int]]) -> Path:
    """Give the one of the runs that RUN may mean for which a key is greatest.

    Raises:
        BadInput: there is none.
    """
    return max(meant(path), key=key)


def results_dir() -> Path:
    """Give the results folder that the settings name."""
    from steelyard.config.errors import BadInput
    from steelyard.config.resolve import resolve_config

    try:
        node = resolve_config().provenance.root.at(("runtime", "results_dir"))
    except BadInput:
        node = None  # a command that only reads does not ask for settings in order
    return Path("results" if node is None else str(node.value))
