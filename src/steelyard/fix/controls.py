"""What becomes of a control: answered before, refused, queued, or done at once. Pure.

In this order: a known operation id is answered from what is stored, before anything else is
compared; then the revision; then whether the action can ever, and can now, succeed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final

from steelyard.fix.control_state import (
    Answered,
    Applied,
    CandidateState,
    Judgement,
    Packet,
    Queued,
    Reason,
    Refused,
    RunState,
    Status,
    StoredOperation,
)
from steelyard.fix.schema.control import Control, ScanResponse, control_document
from steelyard.fix.schema.profile import limits_breaches
from steelyard.fix.schema.search import search_against_spec
from steelyard.results.identity import canonical_json

HOST_WORK: Final = frozenset({"directive", "expand", "continue"})
"""Actions that wait for a host to acknowledge them."""
GROWING_LIMITS: Final = ("max_candidates", "max_trials", "max_elapsed_seconds")
"""Limits that are used up; an extension may not lower them."""


def control_digest(control: Control) -> str:
    """Give what two requests with the same content share: a SHA-256."""
    return hashlib.sha256(canonical_json(control_document(control))).hexdigest()


def judge(control: Control, state: RunState) -> Judgement:
    """Say what becomes of a control.

    A control that can never succeed is refused, one that cannot succeed now is queued where there
    is somebody to do it later; else it is refused with `is_passing`.
    """
    stored = state.operations.get(control.operation_id)
    if stored is not None:
        if stored.digest != control_digest(control):
            return Refused(
                Reason.ID_REUSED,
                f"the operation id {control.operation_id} was used with other contents",
                "send the very same file, or use a new id for a new request",
            )
        if not _may_be_done_again(control, stored, state):
            return Answered(stored)
    elif control.expected_revision != state.revision:
        return Refused(
            Reason.REVISION_CONFLICT,
            f"the run is at revision {state.revision}, the control expects "
            f"{control.expected_revision}: it changed meanwhile",
            "look at `status`, then send it with the new revision and a new operation_id",
        )
    if state.is_over and control.action not in ("stop", "cancel", "scan_fail"):
        return Refused(
            Reason.RUN_OVER,
            "the baseline is invalidated: nothing more can come of this run",
            "start a new run",
        )
    return _JUDGES[control.action](control, state)


def _may_be_done_again(control: Control, stored: StoredOperation, state: RunState) -> bool:
    """True where it failed for a passing reason, or acknowledged an expansion that did."""
    target = state.operations.get(control.target_operation_id or "")
    meant = (stored, target) if control.action == "ack" else (stored,)
    return any(
        one is not None and one.status is Status.FAILED and one.is_retryable for one in meant
    )


def _policy(control: Control, state: RunState) -> Judgement:
    policy = control.policy
    breaches = (
        [] if policy is None else search_against_spec(policy, state.metrics, state.task_metrics)
    )
    if breaches:
        return Refused(Reason.UNDECLARED, breaches[0].message, breaches[0].remedy)
    return Applied()


def _directive(control: Control, state: RunState) -> Judgement:
    return Queued(Reason.WAITS_FOR_HOST, "a host takes it before its next proposal")


def _expand(control: Control, state: RunState) -> Judgement:
    parent = _candidate(control.parent_id, state)
    if isinstance(parent, Refused):
        return parent
    if out := _out(parent):
        return out
    if parent.is_exhausted:
        return Refused(
            Reason.CANDIDATE_OUT,
            f"{parent.candidate} is exhausted: it is not expanded any more",
            "name another parent",
        )
    if parent.is_settled and not parent.is_eligible:
        return Refused(
            Reason.CANDIDATE_OUT,
            f"{parent.candidate} did not pass, and nothing about it is still to come",
            "name a verified candidate that keeps the constraints",
        )
    if not parent.is_eligible:
        return Queued(Reason.NOT_VERIFIED_YET, f"{parent.candidate} is not verified yet")
    if state.is_stopped:
        return Queued(Reason.STOPPED, "the run is stopped")
    if state.exhausted:
        said = ", ".join(state.exhausted)
        return Queued(Reason.LIMITS_EXHAUSTED, f"limits are exhausted: {said}")
    return Queued(Reason.WAITS_FOR_HOST, "a host takes it before its next proposal")


def _continue(control: Control, state: RunState) -> Judgement:
    if not state.is_stopped:
        return Refused(
            Reason.NOT_STOPPED,
            "the run is not stopped",
            "nothing needs to be continued; `fix stop` stops it first",
        )
    limits = state.limits if control.limits is None else control.limits.over(state.limits)
    lowered = [
        name for name in GROWING_LIMITS if getattr(limits, name) < getattr(state.limits, name)
    ]
    if lowered:
        return Refused(
            Reason.LIMITS_REFUSED,
            f"an extension cannot lower {', '.join(lowered)}",
            "give at least the present limits; what is spent stays spent",
        )
    if breaches := limits_breaches(limits, state.profile):
        return Refused(Reason.LIMITS_REFUSED, breaches[0].message, breaches[0].remedy)
    short = [
        name
        for name in state.exhausted
        if getattr(limits, name) <= max(getattr(state.limits, name), state.spent.get(name, 0))
    ]
    if short:
        return Refused(
            Reason.LIMITS_EXHAUSTED,
            f"{', '.join(short)} is used up, and is not extended",
            "name a higher limit under `limits` (or with `--limits-file`)",
        )
    return Queued(Reason.WAITS_FOR_HOST, "a host takes it up")


def _stop(control: Control, state: RunState) -> Judgement:
    return Applied()


def _select(control: Control, state: RunState) -> Judgement:
    chosen = _candidate(control.candidate_id, state)
    if isinstance(chosen, Refused):
        return chosen
    if out := _out(chosen):
        return out
    if chosen.is_baseline:
        return Refused(
            Reason.NOT_ON_FRONTIER,
            "the baseline is what there was: there is nothing to deliver",
            "select a candidate of the frontier",
        )
    if chosen.is_on_frontier:
        return Applied()
    if chosen.is_verified:
        return Queued(Reason.NOT_ON_FRONTIER, f"{chosen.candidate} is dominated")
    if chosen.is_settled:
        return Refused(
            Reason.NOT_ON_FRONTIER,
            f"{chosen.candidate} is not verified, and nothing about it is still to come",
            "select a candidate of the verified frontier; `status` lists it",
        )
    return Queued(Reason.NOT_VERIFIED_YET, f"{chosen.candidate} is not verified yet")


def _invalidate(control: Control, state: RunState) -> Judgement:
    meant = _candidate(control.candidate_id, state)
    if isinstance(meant, Refused):
        return meant
    return _out(meant) or Applied()


def _exhaust(control: Control, state: RunState) -> Judgement:
    meant = _candidate(control.candidate_id, state)
    if isinstance(meant, Refused):
        return meant
    if meant.is_exhausted:
        return Refused(
            Reason.CANDIDATE_OUT, f"{meant.candidate} is exhausted already", "nothing is to be done"
        )
    return _out(meant) or Applied()


def _cancel(control: Control, state: RunState) -> Judgement:
    target = state.operations.get(control.target_operation_id or "")
    if target is None:
        return _unknown_operation(control)
    if target.status is not Status.QUEUED:
        return Refused(
            Reason.NOT_QUEUED,
            f"{target.operation_id} is {target.status.value}: only queued work can be cancelled",
            "stop the run, or exhaust or invalidate the candidate",
        )
    return Applied()


def _ack(control: Control, state: RunState) -> Judgement:
    target = state.operations.get(control.target_operation_id or "")
    if target is None:
        return _unknown_operation(control)
    if target.action not in HOST_WORK:
        return Refused(
            Reason.NOT_HOST_WORK,
            f"{target.operation_id} is a {target.action}, which needs no acknowledgement",
            f"acknowledge one of: {', '.join(sorted(HOST_WORK))}",
        )
    owner = target.host_id or state.active_host
    if owner is not None and owner != control.host_id:
        return Refused(
            Reason.OTHER_HOST,
            f"{target.operation_id} is {owner}'s: its work is not taken over",
            f"let {owner} acknowledge it, under the same host_id",
        )
    is_open = target.status in (Status.QUEUED, Status.ACKNOWLEDGED)
    if not is_open and not (target.status is Status.FAILED and target.is_retryable):
        return Refused(
            Reason.NOT_QUEUED,
            f"{target.operation_id} is {target.status.value}: there is nothing to take",
            "look at `status` for what is queued",
        )
    if target.action == "expand" and target.status is Status.QUEUED:
        return _room_for_expansion(state)
    return Applied()


def _room_for_expansion(state: RunState) -> Judgement:
    if state.is_stopped:
        return Refused(
            Reason.STOPPED,
            "the run is stopped",
            "continue it first; the expansion stays queued",
            is_passing=True,
        )
    if state.exhausted:
        return Refused(
            Reason.LIMITS_EXHAUSTED,
            f"limits are exhausted: {', '.join(state.exhausted)}",
            "continue the run with extended limits; the expansion stays queued",
            is_passing=True,
        )
    return Applied()


def _scan(control: Control, state: RunState) -> Judgement:
    scans = state.scans
    if state.profile.scans is None or scans.left <= 0:
        why = "the profile has none" if state.profile.scans is None else "all are used"
        return Refused(
            Reason.NO_SCANS,
            f"this run has no scan left: {why}",
            "a new run takes `scans` from its profile; a running one is never extended",
        )
    if scans.pending is not None:
        return Refused(
            Reason.SCAN_PENDING,
            f"the scan {scans.pending.scan_id} is not answered",
            "answer it with insights, or give it up with scan_fail",
            is_passing=True,
        )
    if state.is_stopped or "max_elapsed_seconds" in state.exhausted:
        return Refused(
            Reason.STOPPED,
            "the run is stopped or out of time",
            "continue it first",
            is_passing=True,
        )
    if not scans.has_new_rounds:
        return Refused(
            Reason.NOTHING_TO_SCAN,
            "no round has been completed since the last scan",
            "complete a round first",
            is_passing=True,
        )
    return Applied()


def _insights(control: Control, state: RunState) -> Judgement:
    response = control.response
    if response is None:
        raise ValueError("an insights control without a response passed its schema")
    packet = state.scans.pending
    if packet is None or packet.scan_id != response.scan_id:
        return _unknown_scan(response.scan_id, state)
    if packet.digest != response.packet_digest:
        return Refused(
            Reason.OTHER_PACKET,
            "the response is to another packet",
            f"copy packet_digest from the template: {packet.digest}",
        )
    if packet.is_expired:
        return Refused(
            Reason.SCAN_EXPIRED,
            f"the deadline of the scan {packet.scan_id} has passed",
            "submit scan_fail with the reason; its slot is spent",
        )
    return _within(response, packet) or Applied()


def _within(response: ScanResponse, packet: Packet) -> Refused | None:
    rows: tuple[tuple[str, Collection[str]], ...] = (
        ("candidate_ids", packet.candidate_ids),
        ("evidence", packet.evidence),
        ("code_paths", packet.code_paths),
    )
    for number, insight in enumerate(response.insights):
        for name, known in rows:
            for value in getattr(insight, name):
                if value not in known:
                    return Refused(
                        Reason.NOT_IN_PACKET,
                        f"response.insights[{number}].{name}: {value!r} is not in the packet",
                        "cite what the packet holds",
                    )
    return None


def _scan_fail(control: Control, state: RunState) -> Judgement:
    packet = state.scans.pending
    if packet is None or packet.scan_id != control.scan_id:
        return _unknown_scan(control.scan_id or "", state)
    return Applied()


_JUDGES: Final[Mapping[str, Callable[[Control, RunState], Judgement]]] = MappingProxyType(
    {
        "policy": _policy,
        "directive": _directive,
        "expand": _expand,
        "continue": _continue,
        "stop": _stop,
        "select": _select,
        "invalidate": _invalidate,
        "exhaust": _exhaust,
        "cancel": _cancel,
        "ack": _ack,
        "scan": _scan,
        "insights": _insights,
        "scan_fail": _scan_fail,
    }
)


def _candidate(name: str | None, state: RunState) -> CandidateState | Refused:
    found = state.candidates.get(name or "")
    if found is not None:
        return found
    return Refused(
        Reason.UNKNOWN_CANDIDATE,
        f"this run has no candidate {name!r}",
        "`status` lists the candidates",
    )


def _out(candidate: CandidateState) -> Refused | None:
    if not candidate.is_invalidated:
        return None
    return Refused(
        Reason.CANDIDATE_OUT,
        f"{candidate.candidate} is invalidated already",
        "name a valid candidate",
    )


def _unknown_operation(control: Control) -> Refused:
    return Refused(
        Reason.UNKNOWN_OPERATION,
        f"this run has no operation {control.target_operation_id!r}",
        "`status` lists the controls with their operation ids",
    )


def _unknown_scan(scan_id: str, state: RunState) -> Refused:
    ended = scan_id in state.scans.ended
    return Refused(
        Reason.UNKNOWN_SCAN,
        f"the scan {scan_id} has ended" if ended else f"this run has no scan {scan_id!r}",
        "`status` shows the one that is pending under scan_pending",
    )
