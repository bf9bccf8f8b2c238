"""Controls of a run: what `fix steer --control-file` takes.

Which fields an action has is a table. Whether a control can be done now is `fix/controls.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import ConfigDict, Field

from steelyard.config.schema.request import Strict
from steelyard.config.source import Node
from steelyard.fix.schema.profile import LimitsExtension, extension_breaches
from steelyard.fix.schema.reading import Breach, checked_document, conditions, read_document
from steelyard.fix.schema.search import Search, search_breaches, search_document
from steelyard.fix.schema.words import MAX_INTEGER, Said, Words

Action = Literal[
    "policy",
    "directive",
    "expand",
    "continue",
    "stop",
    "select",
    "invalidate",
    "exhaust",
    "cancel",
    "ack",
    "scan",
    "insights",
    "scan_fail",
]
ACTIONS: Final[tuple[str, ...]] = get_args(Action)
MAX_INSIGHTS: Final = 20

_NONE: Final[frozenset[str]] = frozenset()
FIELDS_OF_ACTION: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = MappingProxyType(
    {
        "policy": (frozenset({"policy"}), _NONE),
        "directive": (frozenset({"text"}), _NONE),
        "expand": (frozenset({"parent_id", "hypothesis"}), _NONE),
        "continue": (_NONE, frozenset({"limits"})),
        "stop": (_NONE, _NONE),
        "select": (frozenset({"candidate_id"}), _NONE),
        "invalidate": (frozenset({"candidate_id", "reason"}), _NONE),
        "exhaust": (frozenset({"candidate_id", "reason"}), _NONE),
        "cancel": (frozenset({"target_operation_id"}), _NONE),
        "ack": (frozenset({"target_operation_id", "host_id"}), _NONE),
        "scan": (_NONE, _NONE),
        "insights": (frozenset({"response"}), _NONE),
        "scan_fail": (frozenset({"scan_id", "reason"}), _NONE),
    }
)
"""By action: the fields it needs, those it may have besides."""

COMMON_FIELDS: Final = frozenset({"version", "operation_id", "expected_revision", "action"})

OperationId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$")]


class Insight(Strict):
    """What a scan's reader takes from completed experiments."""

    kind: Literal["failure_pattern", "unsuccessful_hypothesis", "follow_up"]
    """What sort of lesson it is."""
    summary: Said
    """The lesson in short."""
    rationale: Said
    """Why the evidence supports it."""
    uncertainty: Said
    """What speaks against it, or is not known."""
    candidate_ids: Annotated[list[Words], Field(min_length=1)]
    """Candidates of the packet that it rests on."""
    evidence: Annotated[list[Words], Field(min_length=1)]
    """Evidence of the packet that it rests on."""
    code_paths: Annotated[list[Words], Field(min_length=1)]
    """Paths of the packet that it is about."""


class ScanResponse(Strict):
    """The filled-in template of a scan."""

    scan_id: Words
    """The scan; copied from the template."""
    packet_digest: Words
    """The packet that was read; copied from the template."""
    author: Words
    """Who read it."""
    insights: Annotated[list[Insight], Field(max_length=MAX_INSIGHTS)]
    """Lessons, 20 at most; none where the packet supports none."""


class Control(Strict):
    """One request to a run: an action and its fields."""

    model_config = ConfigDict(
        json_schema_extra=conditions("action", FIELDS_OF_ACTION, COMMON_FIELDS)
    )
    version: Literal[1]
    """The format: 1."""
    operation_id: OperationId
    """Unique; the same id with the same content is the same request."""
    expected_revision: Annotated[int, Field(ge=0, le=MAX_INTEGER)]
    """The run's revision that the request was made for, from `status`."""
    action: Action
    """What is to be done."""
    policy: Search | None = None
    """policy: how parents are chosen from now on."""
    text: Said | None = None
    """directive: guidance for the host."""
    parent_id: Words | None = None
    """expand: the candidate to start from."""
    hypothesis: Said | None = None
    """expand: what is to be tried."""
    limits: LimitsExtension | None = None
    """continue: limits in place of the run's."""
    candidate_id: Words | None = None
    """select, invalidate, exhaust: the candidate."""
    reason: Said | None = None
    """invalidate, exhaust, scan_fail: why."""
    target_operation_id: OperationId | None = None
    """cancel, ack: the control that is meant."""
    host_id: Words | None = None
    """ack: who takes the work."""
    scan_id: Words | None = None
    """scan_fail: the scan."""
    response: ScanResponse | None = None
    """insights: the filled-in template."""


def control_breaches(control: Control) -> list[Breach]:
    """Give what a control breaks by itself."""
    found = [*_fields(control)]
    if control.policy is not None:
        found += search_breaches(control.policy, ("policy",))
    if control.limits is not None:
        found += [
            Breach(("limits", *breach.field), breach.message, breach.remedy)
            for breach in extension_breaches(control.limits)
        ]
    if control.action in ("cancel", "ack") and control.target_operation_id == control.operation_id:
        found.append(
            Breach(
                ("target_operation_id",),
                "a control cannot mean itself",
                "name the operation id of the control that is meant, and use a new operation_id",
            )
        )
    if control.response is not None:
        found += _insights(control.response)
    return found


def _fields(control: Control) -> Iterator[Breach]:
    needed, allowed = FIELDS_OF_ACTION[control.action]
    given = {
        name for name in control.model_fields_set if getattr(control, name) is not None
    } - COMMON_FIELDS
    for name in sorted(needed - given):
        yield Breach((name,), f"the action {control.action} needs {name}", f"add {name}")
    for name in sorted(given - needed - allowed):
        takes = ", ".join(sorted(needed | allowed)) or "no field of its own"
        yield Breach(
            (name,),
            f"{name} is nothing to the action {control.action}",
            f"take it out; {control.action} takes: {takes}",
        )


def _insights(response: ScanResponse) -> Iterator[Breach]:
    for number, insight in enumerate(response.insights):
        for field in ("candidate_ids", "evidence", "code_paths"):
            values = getattr(insight, field)
            for index, value in enumerate(values):
                if value in values[:index]:
                    yield Breach(
                        ("response", "insights", number, field, index),
                        f"{value!r} is named twice",
                        "name it once",
                    )


def control_document(control: Control) -> dict[str, Any]:
    """Write a control as JSON that reads back as the same control: what was written, no more."""
    written = control.model_dump(mode="json", exclude_none=True)
    if control.policy is not None:
        written["policy"] = search_document(control.policy)
    return written


def read_control(path: Path, *, shown: str | None = None) -> tuple[Control, Node]:
    """Read a control file and the document it was read from.

    Raises:
        BadInput: everything that is wrong with it, at once, with places.
    """
    root = read_document(path, layer="control", shown=shown)
    return checked_control(root), root


def checked_control(root: Node) -> Control:
    """Hold a document against the control's schema and rules.

    Raises:
        InvalidFixFile: everything that is wrong with it, at once, with places.
    """
    return checked_document(root, Control, control_breaches, called="the control")
