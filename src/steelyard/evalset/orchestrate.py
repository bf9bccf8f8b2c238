"""Make the orchestration of a set: each cell a request. Merging and checking are `config`'s.

Every value keeps the place where it was written, so what planning finds wrong is said of the
manifest's or the project's own line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from steelyard.config import layers
from steelyard.config.schema.orchestration import SharedRuntime
from steelyard.config.schema.request import RequestRuntime
from steelyard.config.source import Node, Origin
from steelyard.evalset.manifest import ReadManifest
from steelyard.evalset.references import References
from steelyard.evalset.set_document import SetCell

_SHARED: Final = tuple(SharedRuntime.model_fields)
_OF_REQUESTS: Final = tuple(RequestRuntime.model_fields)
_ONE_AFTER_THE_OTHER: Final = 1


def set_orchestration(
    read: ReadManifest,
    cells: Sequence[SetCell],
    references: References,
    *,
    budget_usd: float | None,
    reuses: bool,
) -> Node:
    """Make the document of an orchestration, as `config.resolve.resolve_orchestration` takes it.

    Args:
        read: the manifest.
        cells: what is to run, in order.
        references: what the cells name.
        budget_usd: what may still be spent; None for no limit.
        reuses: whether cells go on from their earlier runs.
    """
    manifest, root = read.manifest, read.root
    top = root.origin
    runtime = root.at(("runtime",))
    shared = layers.picked(runtime, _SHARED)
    if manifest.limits.max_concurrent_runs is not None:
        limit = root.nearest(("limits", "max_concurrent_runs"))
        shared = _with(shared, {"max_concurrent_requests": limit}, top)
    defaults = {
        "execution": layers.without(root.at(("execution",)), "task_concurrency"),
        "runtime": layers.picked(runtime, _OF_REQUESTS),
        "output": root.at(("output",)),
    }
    fields: dict[str, Node | None] = {
        "name": root.at(("name",)),
        "task_concurrency": root.at(("execution", "task_concurrency")),
        "runtime": shared,
        "defaults": Node(_present(defaults), top),
        "requests": Node([_request(read, cell, references, reuses) for cell in cells], top),
    }
    if budget_usd is not None:
        where = root.nearest(("limits", "budget_usd")).origin
        fields["budget"] = Node({"usd": Node(budget_usd, where)}, where)
    return Node(_present(fields), top)


def _request(
    read: ReadManifest,
    cell: SetCell,
    references: References,
    reuses: bool,
) -> Node:
    manifest, root = read.manifest, read.root
    made = cell.cell
    pack = root.nearest(("packs", _place(manifest.packs, made.pack_ref)))
    agents = [(agent.deployment, agent.label) for agent in manifest.agents]
    agent = root.nearest(("agents", _place(agents, (made.agent_ref, made.agent_label)))).origin
    parts = dict(references.agents[made.agent_ref, made.agent_label].parts)
    if made.model_ref is not None:
        place = ("models", _place(manifest.models or (), made.model_ref))
        chosen = Node(made.model_ref.strip(), root.nearest(place).origin)
        parts["model"] = _with(parts.get("model"), {"id": chosen}, agent)
    execution = {"seed": Node(made.seed, agent)}
    if not manifest.case_fanout and manifest.execution.max_concurrent_attempts is None:
        execution["max_concurrent_attempts"] = Node(_ONE_AFTER_THE_OTHER, agent)
    value = {
        **parts,
        "name": Node(cell.folder, pack.origin),
        "benchmark": references.benchmark(made.pack_ref, pack),
        "execution": _with(parts.get("execution"), execution, agent),
    }
    if reuses:
        value["runtime"] = Node({"reuse": Node(True, agent)}, agent)
    return Node(value, agent)


def _place(items: Sequence[Any], item: Any) -> int:
    """Give where an item stands, 0 where it does not: a cell of an earlier manifest."""
    return items.index(item) if item in items else 0


def _with(node: Node | None, fields: Mapping[str, Node], origin: Origin) -> Node:
    if node is None or not isinstance(node.value, dict):
        return Node(dict(fields), origin)
    return Node({**node.value, **fields}, node.origin)


def _present(fields: Mapping[str, Node | None]) -> dict[str, Node]:
    return {name: node for name, node in fields.items() if node is not None}
