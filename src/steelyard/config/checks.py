"""What schemas cannot say: misplaced fields, clashing names, patterns, what is not there yet.

Every function adds to a list of problems and goes on; none raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from steelyard.config.errors import Problem, Where
from steelyard.config.names import (
    clash_key,
    is_device_name,
    is_path_component,
    normalise,
)
from steelyard.config.source import FieldPath, Node, path_text
from steelyard.config.validation import written_at

COMPONENTS: Final = ("benchmark", "harness", "environment")
AUTO_ENVIRONMENT: Final = "auto"


class ComponentIds(Protocol):
    """Which component ids exist; the registry, handed in from above."""

    def is_known(self, kind: str, name: str) -> bool:
        """True where the id names a component of that kind, or has the form of a path."""
        ...

    def fault(self, kind: str, name: str, base_dir: Path | None) -> tuple[str, str] | None:
        """What is wrong with an id and what would be right; None where it leads somewhere.

        `base_dir` is what relative paths start from; None: files are not looked at.
        """
        ...

    def known(self, kind: str) -> Sequence[str]:
        """Every id and alias of a kind."""
        ...

    def canonical(self, kind: str, name: str) -> str:
        """Resolve an alias; other ids come back as they are."""
        ...

    def path_fields(
        self, kind: str, name: str, base_dir: Path
    ) -> Mapping[str, Callable[[str], bool]]:
        """Give a component's parameters that are paths, each with what tells a path.

        The component is imported; none where that cannot be done.
        """
        ...


class RememberedIds:
    """Asks each question once: the registry looks through what is installed to answer."""

    def __init__(self, ids: ComponentIds) -> None:
        self.is_known = cache(ids.is_known)
        self.known = cache(ids.known)
        self.fault = cache(ids.fault)
        self.canonical = cache(ids.canonical)
        self.path_fields = cache(ids.path_fields)


_MISPLACED: Final[tuple[tuple[str, str, str], ...]] = (
    (r"(defaults|requests\[\d+\])\.execution\.task_concurrency", "orchestration",
     "the pool is shared: write task_concurrency at the top level of the orchestration"),
    (r"(defaults|requests\[\d+\])\.task_concurrency", "orchestration",
     "the pool is shared: write task_concurrency at the top level of the orchestration"),
    (r"(execution|model|benchmark|harness|environment|output)", "orchestration",
     "write it under defaults (for every request) or under one of requests"),
    (r"runtime\.(reuse|reuse_run_id|checkpoint_resume)", "orchestration",
     "write it under defaults.runtime or requests[].runtime"),
    (r"(defaults|requests\[\d+\])\.runtime\.(provider_limits|env_open_qps|"
     r"max_concurrent_requests|results_dir|data_dir|timeout_seconds|cleanup_grace_seconds|progress|log_level|file_log_level|log_format|"
     r"file_log_format|allow_unpriced|auto_install_dependencies|secret_env)", "orchestration",
     "it is shared by all requests: write it under runtime at the top level"),
    (r"(defaults|requests\[\d+\])\.prices", "orchestration", "write prices at the top level"),
    (r"task_concurrency", "config", "write it under execution"),
    (r"(defaults|requests|version|name)", "config",
     "that belongs to an orchestration, which `steelyard launch` takes; in a configuration file "
     "write model, execution, … at the top level"),
    (r"(.*\.)?execution\.(k|strategy|early_stop)", "any", "write it under execution.attempts"),
    (r"((defaults|requests\[\d+\])\.)?attempts", "any", "write it under execution"),
    (r"(.*\.)?model\.(temperature|top_p|top_k|max_tokens|max_completion_tokens|seed|stop|"
     r"reasoning_effort|n)", "any", "options of generation go under model.params"),
)  # fmt: skip
"""Where a field that is known elsewhere belongs: its path, the kind of document, the remedy."""


def misplaced(root: Node, document: str, problems: list[Problem]) -> None:
    """Find fields that belong elsewhere; the schema would only call them unknown."""
    # What belongs where is the same for every request: of thousands, each path is judged once.
    known: dict[FieldPath, str | None] = {}
    for path, node in _fields(root):
        alike = tuple(0 if isinstance(step, int) else step for step in path)
        if alike not in known:
            known[alike] = _remedy(path_text(alike), document)
        if (remedy := known[alike]) is not None:
            where = node.origin.key_where
            problems.append(Problem(f"{path[-1]!r} does not belong here", where, remedy))


def _remedy(text: str, document: str) -> str | None:
    """Say where a field belongs; None where it may stand where it does."""
    for pattern, kind, remedy in _MISPLACED:
        if kind in (document, "any") and re.fullmatch(pattern, text):
            return remedy
    return None


def _fields(root: Node) -> Iterator[tuple[FieldPath, Node]]:
    """Iterate over fields down to the depth of sections' own fields."""
    if not isinstance(root.value, dict):
        return
    for key, node in root.value.items():
        yield (key,), node
        holders: list[tuple[FieldPath, Node]] = [((key,), node)]
        if key == "requests" and isinstance(node.value, list):
            holders = [((key, i), item) for i, item in enumerate(node.value)]
        for path, holder in holders:
            yield from _two_levels(path, holder)


def _two_levels(path: FieldPath, holder: Node) -> Iterator[tuple[FieldPath, Node]]:
    if not isinstance(holder.value, dict):
        return
    for key, node in holder.value.items():
        yield (*path, key), node
        if isinstance(node.value, dict):
            for inner, below in node.value.items():
                yield (*path, key, inner), below


def component_sections(root: Node) -> Iterator[tuple[str, Node]]:
    """Iterate over the component sections of a document: kind and node."""
    holders = [root, root.at(("defaults",))]
    requests = root.at(("requests",))
    if requests is not None and isinstance(requests.value, list):
        holders += requests.value
    for holder in holders:
        for kind in COMPONENTS:
            node = holder.at((kind,)) if holder is not None else None
            if node is not None and isinstance(node.value, dict):
                yield kind, node


def components(
    root: Node, ids: ComponentIds | None, problems: list[Problem], base_dir: Path
) -> None:
    """Find `params` wrappers and, where `ids` are given, ids that lead nowhere.

    Relative paths start from `base_dir`.
    """
    for kind, section in component_sections(root):
        wrapper = section.value.get("params")
        if wrapper is not None:
            inside = ", ".join(wrapper.value) if isinstance(wrapper.value, dict) else ""
            problems.append(
                Problem(
                    f"a {kind} has no params wrapper",
                    wrapper.origin.key_where,
                    remedy=f"write {inside or 'its fields'} beside id, directly under {kind}",
                )
            )
        found = section.value.get("id")
        if ids is not None and found is not None and isinstance(found.value, str):
            unknown_id(kind, found.value, found.origin.where, ids, problems, base_dir)


def unknown_id(
    kind: str,
    name: str,
    where: Where,
    ids: ComponentIds,
    problems: list[Problem],
    base_dir: Path | None = None,
) -> None:
    """Report an id that nothing answers to, or a path that leads nowhere."""
    if not name or (kind, name) == ("environment", AUTO_ENVIRONMENT):
        return
    if (fault := ids.fault(kind, name, base_dir)) is not None:
        problems.append(Problem(fault[0], where, fault[1]))


def orchestration(root: Node, ids: ComponentIds | None, problems: list[Problem]) -> None:
    """Check a merged orchestration, as far as its types allow."""
    for field in ("provider_limits", "env_open_qps"):
        limits = root.at(("runtime", field))
        if ids is not None and limits is not None and isinstance(limits.value, dict):
            for provider, node in limits.value.items():
                unknown_id("environment", provider, node.origin.key_where, ids, problems)
    requests = root.at(("requests",))
    if requests is None or not isinstance(requests.value, list):
        return
    for index, request in enumerate(requests.value):
        _execution(request, index, problems)
        _analysis(request, ids, problems)
        _output(request, problems)
    _namespaces(requests.value, problems)


def _execution(request: Node, index: int, problems: list[Problem]) -> None:
    patterns = request.at(("execution", "retry_pattern_list"))
    if patterns is not None and isinstance(patterns.value, list):
        for number, node in enumerate(patterns.value):
            if isinstance(node.value, str):
                path = ("requests", index, "execution", "retry_pattern_list", number)
                _pattern(node, written_at(node, path), problems)
    recipes = request.at(("execution", "recipes"))
    if recipes is not None and isinstance(recipes.value, list):
        problems += [
            Problem(
                f"unknown recipe {node.value!r}",
                node.origin.where,
                remedy="this version has no recipes: leave it out",
            )
            for node in recipes.value
            if isinstance(node.value, str)
        ]
    shard = request.at(("execution", "shard"))
    if shard is not None and isinstance(shard.value, str):
        found = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", shard.value)
        if found and int(found[1]) > int(found[2]):
            problems.append(
                Problem(
                    f"there is no part {found[1]} of {found[2]}",
                    shard.origin.where,
                    remedy="write i/n with 1 <= i <= n",
                )
            )


def _analysis(request: Node, ids: ComponentIds | None, problems: list[Problem]) -> None:
    """Each analyzer must be known: by its id alone, or in a mapping with its parameters."""
    chosen = request.at(("execution", "analysis"))
    if ids is None or chosen is None or not isinstance(chosen.value, list):
        return
    for item in chosen.value:
        named = item.value.get("id") if isinstance(item.value, dict) else item
        if named is not None and isinstance(named.value, str):
            unknown_id("analyzer", named.value, named.origin.where, ids, problems)


def _pattern(node: Node, where: Where, problems: list[Problem]) -> None:
    try:
        re.compile(node.value)
    except (re.error, RecursionError, OverflowError) as error:
        problems.append(
            Problem(
                f"not a regular expression: {error}",
                where,
                remedy="write a pattern of Python's `re`; re.escape shows what to escape",
            )
        )


def _output(request: Node, problems: list[Problem]) -> None:
    name = request.at(("name",))
    if name is not None and isinstance(name.value, str) and name.value:
        component = normalise(name.value)
        if not component or is_device_name(component):
            said = "has no letter or digit" if not component else "is a device on Windows"
            problems.append(
                Problem(
                    f"the name {name.value!r} cannot name a folder: it {said}",
                    name.origin.where,
                    remedy="choose another name",
                )
            )
    for field in ("run_id", "run_name"):
        node = request.at(("output", field))
        if node is None or not isinstance(node.value, str) or is_path_component(node.value):
            continue
        if field == "run_name" and node.value == "":
            continue
        better = normalise(node.value)
        usable = is_path_component(better)
        problems.append(
            Problem(
                f"the {field} {node.value!r} cannot name a folder",
                node.origin.where,
                remedy=f"letters, digits, `.`, `_`, `-`{f': {better}' if usable else ''}",
            )
        )


def namespace(run_name: str | None, name: str) -> tuple[str, ...]:
    """Give the folders between the results' root and a run: `[run_name,] name`."""
    return (*((run_name,) if run_name else ()), normalise(name))


def _namespaces(requests: Sequence[Node], problems: list[Problem]) -> None:
    """Names must be unique, and no two requests may share an output namespace."""
    names: dict[str, Node] = {}
    spaces: dict[tuple[str, ...], Node] = {}
    for request in requests:
        node = request.at(("name",))
        if node is None or not isinstance(node.value, str) or not normalise(node.value):
            continue
        group = request.at(("output", "run_name"))
        run_name = group.value if group is not None and isinstance(group.value, str) else None
        key = tuple(clash_key(part) for part in namespace(run_name, node.value))
        if (twin := names.get(node.value)) is not None:
            problems.append(_twin(f"the name {node.value!r} is used twice", node, twin))
        elif (twin := spaces.get(key)) is not None:
            said = f"{node.value!r} and {twin.value!r} name the same result folder"
            problems.append(_twin(said, node, twin))
        names.setdefault(node.value, node)
        spaces.setdefault(key, node)
    for key, node in spaces.items():
        # A group's folder holds requests, a request's holds runs: one folder cannot be both.
        if len(key) == 2 and (twin := spaces.get(key[:1])) is not None:
            said = f"the result folder of {twin.value!r} is also the group of {node.value!r}"
            problems.append(_twin(said, node, twin))


def _twin(message: str, node: Node, twin: Node) -> Problem:
    where = twin.origin.where
    line = f" (first on line {where.line})" if where.line else ""
    return Problem(
        message + line,
        node.origin.where,
        remedy="give each request a name that differs by more than case and punctuation",
    )
