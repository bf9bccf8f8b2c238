"""The RUN of a command line: a run directory, the folder of a request's runs, or a run id."""

from __future__ import annotations

from pathlib import Path


def run_root(path: Path) -> Path:
    """Give the run directory that RUN names: itself, the newest run right below it, or by its id.

    A path that holds no run is given back: whoever reads it says what is wrong with it.

    Raises:
        BadInput: several requests have a run of that id.
    """
    from steelyard.cli.output import note
    from steelyard.results.newest import newest_run

    if len(path.parts) == 1 and not path.exists():
        return _of_id(path)
    newest = newest_run(path)
    if newest.among > 1:
        note(f"the newest of {newest.among} runs: {newest.root}")
    return newest.root


def _of_id(path: Path) -> Path:
    """Look for a run of that id in the results folder, grouped runs too."""
    from glob import escape

    from steelyard.config.errors import BadInput
    from steelyard.results.layout import RunFiles

    results = _results_dir()
    name = escape(str(path))
    found = sorted(
        root
        for pattern in (f"*/{name}", f"*/*/{name}")
        for root in results.glob(pattern)
        if RunFiles(root).document.exists()
    )
    if len(found) > 1:
        raise BadInput(
            f"{len(found)} requests have a run {str(path)!r}",
            remedy=f"name its folder: {', '.join(map(str, found))}",
        )
    return found[0] if found else path


def _results_dir() -> Path:
    from steelyard.config.errors import BadInput
    from steelyard.config.resolve import resolve_config

    try:
        node = resolve_config().provenance.root.at(("runtime", "results_dir"))
    except BadInput:
        node = None  # a command that only reads does not ask for settings in order
    return Path("results" if node is None else str(node.value))
