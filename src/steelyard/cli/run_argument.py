"""The RUN of a command line: a run directory, or the folder of a request's runs."""

from __future__ import annotations

from pathlib import Path


def run_root(path: Path) -> Path:
    """Give the run directory that RUN names: itself, or the newest run right below it.

    A path that holds no run is given back: whoever reads it says what is wrong with it.
    """
    from steelyard.cli.output import note
    from steelyard.results.documents import RunUnreadable, read_run_document
    from steelyard.results.layout import RunFiles

    if RunFiles(path).document.exists() or not path.is_dir():
        return path
    found: list[tuple[str, int, Path]] = []
    for child in path.iterdir():
        if not RunFiles(child).document.exists():
            continue
        try:
            created = str(read_run_document(child).get("created_at", ""))
        except RunUnreadable:
            continue
        number = child.name.partition("-")[2]  # `-2`, `-3`: of one second
        found.append((created, int(number) if number.isdecimal() else 1, child))
    if not found:
        return path
    newest = max(found)[2]
    if len(found) > 1:
        note(f"the newest of {len(found)} runs: {newest}")
    return newest
