"""Find the layers of settings and lay them over each other; each value keeps its origin.

Mappings merge, lists replace. Lowest first: built-in defaults; the user's file; the project's
file; `--config` files in order; the orchestration; the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from steelyard.config.errors import Where
from steelyard.config.source import FieldPath, Node, Origin, read_file

DEFAULT: Final = "default"
USER: Final = "user"
PROJECT: Final = "project"
CONFIG: Final = "config file"
ORCHESTRATION: Final = "orchestration"
COMMAND_LINE: Final = "command line"

PROJECT_FILE: Final = "steelyard.yaml"


@dataclass(frozen=True, slots=True)
class LayerFile:
    """A configuration file that takes part."""

    layer: str
    path: Path
    scope: str
    """What tells its secrets' references from those of other files."""


@dataclass(frozen=True, slots=True)
class Override:
    """One setting of the command line or of a call."""

    path: FieldPath
    """As in a configuration file: `("execution", "attempts", "k")`."""
    value: object
    option: str
    """How messages name it: `--k`."""
    is_text: bool = False
    """True where the value is text to be parsed as the field's type."""
    node: Node | None = None
    """The value with places of its own (a JSON option); then `value` is unused."""


def layer_files(
    environ: Mapping[str, str], cwd: Path, config_files: Sequence[Path]
) -> list[LayerFile]:
    """List the configuration files that take part, lowest first.

    The user's and the project's are listed where they exist, those named always.
    """
    files = []
    user = user_file(environ)
    if user is not None and user.is_file():
        files.append(LayerFile(USER, user, "user:"))
    project = project_file(cwd)
    if project is not None:
        files.append(LayerFile(PROJECT, project, "project:"))
    for number, path in enumerate(config_files, start=1):
        files.append(LayerFile(CONFIG, cwd / path, f"file{number}:"))
    return files


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Give where the user's file would be: below `$XDG_CONFIG_HOME`, by default `~/.config`."""
    configured = environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification: a relative path is to be ignored.
    if configured.startswith("/"):
        return Path(configured, "steelyard", "config.yaml")
    home = environ.get("HOME", "")
    return Path(home, ".config", "steelyard", "config.yaml") if home.startswith("/") else None


def project_file(cwd: Path) -> Path | None:
    """Find `steelyard.yaml` from `cwd` up to the nearest folder with `.git`, no further.

    Outside a repository only `cwd` itself is looked at: a file further up may be anyone's.
    """
    folders = [cwd, *cwd.parents]
    root = next((folder for folder in folders if (folder / ".git").exists()), cwd)
    for folder in folders:
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
        if folder == root:
            break
    return None


def read_once(path: Path, *, layer: str, shown: str) -> Node:
    """Read a configuration file; one that has not changed is read once a process.

    An eval set looks into it for its deployments, then for its cells' settings. Nobody changes
    what this gives: resolving copies it. Errors as `read_file`.
    """
    try:
        found = path.stat()
    except OSError:
        return read_file(path, layer=layer, shown=shown)
    return _read(path, layer, shown, (found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=8)
def _read(path: Path, layer: str, shown: str, _signature: tuple[int, int, int]) -> Node:
    return read_file(path, layer=layer, shown=shown)


def shown(path: Path, cwd: Path) -> str:
    """Give how messages name a file: relative to `cwd` where it lies below."""
    try:
        return str(path.relative_to(cwd))
    except ValueError:
        return str(path)


def merged(layers: Iterable[Node | None]) -> Node | None:
    """Lay nodes over each other, lowest first; None where there are none."""
    result: Node | None = None
    for node in layers:
        if node is not None:
            result = node if result is None else _over(result, node)
    return result


def _over(base: Node, top: Node) -> Node:
    if not isinstance(base.value, dict) or not isinstance(top.value, dict):
        return top
    value = dict(base.value)
    for key, node in top.value.items():
        value[key] = _over(value[key], node) if key in value else node
    return Node(value, top.origin)


def merged_component(layers: Sequence[Node | None], canonical: Callable[[str], str]) -> Node | None:
    """Lay the layers of one component over each other.

    The highest layer that names an `id` selects it; layers with another `id` do not apply.
    """
    present = [node for node in layers if node is not None]
    ids = [_id_of(node) for node in present]
    chosen = next((found for found in reversed(ids) if found is not None), None)
    if chosen is None:
        return merged(present)
    fitting = (
        node
        for node, found in zip(present, ids, strict=True)
        if found is None or canonical(found) == canonical(chosen)
    )
    return merged(fitting)


def _id_of(node: Node) -> str | None:
    found = node.at(("id",))
    return found.value if found is not None and isinstance(found.value, str) else None


def part(node: Node | None, *path: str | int) -> Node | None:
    """Give the node at a path, None where there is none."""
    return node.at(path) if node is not None else None


def picked(node: Node | None, keys: Iterable[str]) -> Node | None:
    """Copy a mapping with only those keys; None where nothing is left."""
    if node is None or not isinstance(node.value, dict):
        return None
    wanted = set(keys)
    value = {key: below for key, below in node.value.items() if key in wanted}
    return Node(value, node.origin) if value else None


def without(node: Node | None, *keys: str) -> Node | None:
    """Copy a mapping without those keys."""
    if node is None or not isinstance(node.value, dict):
        return node
    return Node({k: below for k, below in node.value.items() if k not in keys}, node.origin)


def overrides_node(overrides: Sequence[Override]) -> Node:
    """Make the command line's layer, in the form of a configuration file."""
    root = Node({}, Origin(COMMAND_LINE, Where(field="the command line")))
    for override in overrides:
        node = override.node or _node_of(override.value, override)
        holder = root
        for step in override.path[:-1]:
            below = holder.value.get(step)
            if below is None or not isinstance(below.value, dict):
                below = Node({}, node.origin)
                holder.value[step] = below
            holder = below
        last = override.path[-1]
        known = holder.value.get(last)
        holder.value[last] = _over(known, node) if known is not None else node
    return root


def _node_of(value: object, override: Override) -> Node:
    origin = Origin(COMMAND_LINE, Where(field=override.option), is_text=override.is_text)
    if isinstance(value, Mapping):
        return Node({str(k): _node_of(v, override) for k, v in value.items()}, origin)
    if isinstance(value, list | tuple):
        return Node([_node_of(item, override) for item in value], origin)
    return Node(value, origin)
