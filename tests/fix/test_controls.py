"""Controls against the state of a run: answered, refused, queued, applied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    ScanState,
    Status,
    StoredOperation,
)
from steelyard.fix.controls import control_digest, judge
from steelyard.fix.schema.control import ACTIONS, Control, checked_control
from tests.fix.documents import limits, node, profile
from tests.fix.test_control_files import RESPONSE, control

CANDIDATES = {
    "base": CandidateState("base", is_baseline=True, is_eligible=True, is_settled=True,
                           is_on_frontier=True, is_verified=True),
    "front": CandidateState("front", is_eligible=True, is_on_frontier=True, is_settled=True,
                            is_verified=True),
    "dominated": CandidateState("dominated", is_eligible=True, is_settled=True, is_verified=True),
    "pending": CandidateState("pending"),
    "failed": CandidateState("failed", is_settled=True),
    "exhausted": CandidateState("exhausted", is_on_frontier=True, is_settled=True,
                                is_verified=True, is_exhausted=True),
    "invalid": CandidateState("invalid", is_settled=True, is_invalidated=True),
}  # fmt: skip
PACKET = Packet("s1", "d", False, frozenset({"c2"}), frozenset({"t4"}), frozenset({"app.py"}))
SCANS = {"max_scans": 3, "max_input_bytes": 65536, "scan_timeout_seconds": 120}


def operation(name: str, action: str, status: Status, **more: Any) -> StoredOperation:
    return StoredOperation(name, "digest", action, status, {"of": name}, **more)


OPERATIONS = {
    one.operation_id: one
    for one in (
        operation("queued", "expand", Status.QUEUED),
        operation("taken", "expand", Status.ACKNOWLEDGED, host_id="host-1"),
        operation("done", "directive", Status.APPLIED, host_id="host-1"),
        operation("gone", "continue", Status.CANCELLED),
        operation("broke", "expand", Status.FAILED, host_id="host-1", is_retryable=True),
        operation("lost", "expand", Status.FAILED, host_id="host-1"),
        operation("ruled", "policy", Status.APPLIED),
    )
}


def state(**changes: Any) -> RunState:
    found = RunState(
        revision=12,
        is_stopped=False,
        is_over=False,
        exhausted=(),
        limits=profile().limits,
        profile=profile(scans=SCANS),
        metrics=("latency_ms", "quality"),
        task_metrics=(),
        candidates=CANDIDATES,
        operations=OPERATIONS,
        scans=ScanState(left=3, has_new_rounds=True),
    )
    return replace(found, **changes)


def made(action: str, **changes: Any) -> Control:
    return checked_control(node(control(action, **changes)))


def judged(action: str, at: RunState | None = None, /, **changes: Any) -> Judgement:
    found = judge(made(action, **changes), at or state())
    if isinstance(found, Refused):
        assert found.message
        assert found.remedy
    return found


def refused(action: str, at: RunState | None = None, /, **changes: Any) -> Reason:
    found = judged(action, at, **changes)
    assert isinstance(found, Refused), found
    return found.reason


def queued(action: str, at: RunState | None = None, /, **changes: Any) -> Reason:
    found = judged(action, at, **changes)
    assert isinstance(found, Queued), found
    return found.reason


# -- ids and revisions -------------------------------------------------------------------------


def stored(request: Control, status: Status = Status.APPLIED, **more: Any) -> RunState:
    one = StoredOperation(
        request.operation_id, control_digest(request), request.action, status, {"x": 1}, **more
    )
    return state(operations={**OPERATIONS, one.operation_id: one}, revision=99)


def test_the_same_request_gets_the_same_answer_whatever_the_revision_is_now() -> None:
    request = made("stop")
    found = judge(request, stored(request))
    assert isinstance(found, Answered)
    assert found.stored.answer == {"x": 1}


def test_the_same_id_with_other_contents_is_refused() -> None:
    at = stored(made("stop"))
    assert refused("directive", at) is Reason.ID_REUSED
    assert refused("stop", at, expected_revision=99) is Reason.ID_REUSED


def test_what_failed_for_a_passing_reason_may_be_sent_again() -> None:
    request = made("stop")
    assert isinstance(judge(request, stored(request, Status.FAILED)), Answered)
    again = judge(request, stored(request, Status.FAILED, is_retryable=True))
    assert isinstance(again, Applied)


def test_an_acknowledgement_is_replayed_where_its_expansion_failed_for_a_passing_reason() -> None:
    request = made("ack", target_operation_id="broke")
    assert isinstance(judge(request, stored(request)), Applied)
    other = made("ack", target_operation_id="taken")
    assert isinstance(judge(other, stored(other)), Answered)


@pytest.mark.parametrize("action", ACTIONS)
def test_an_old_revision_is_a_conflict(action: str) -> None:
    assert refused(action, expected_revision=11) is Reason.REVISION_CONFLICT
    assert refused(action, expected_revision=13) is Reason.REVISION_CONFLICT


def test_the_order_of_keys_is_no_other_content() -> None:
    document = control("policy")
    turned = dict(reversed(document.items()))
    one, other = checked_control(node(document)), checked_control(node(turned))
    assert control_digest(one) == control_digest(other)
    assert control_digest(one) != control_digest(made("policy", operation_id="op-2"))


# -- policy, directive, stop -------------------------------------------------------------------


def test_a_policy_takes_effect_also_while_the_run_is_stopped() -> None:
    assert isinstance(judged("policy"), Applied)
    assert isinstance(judged("policy", state(is_stopped=True)), Applied)


def test_a_policy_that_asks_for_what_is_not_declared_can_never_succeed() -> None:
    unknown = {"strategy": "argmax", "objective": "cost"}
    assert refused("policy", policy=unknown) is Reason.UNDECLARED
    tasks = {"strategy": "pareto_per_task"}
    assert refused("policy", policy=tasks) is Reason.UNDECLARED
    assert isinstance(judged("policy", state(task_metrics=("a",)), policy=tasks), Applied)


def test_a_directive_waits_for_a_host_and_a_stop_for_nobody() -> None:
    assert queued("directive") is Reason.WAITS_FOR_HOST
    assert isinstance(judged("stop"), Applied)
    assert isinstance(judged("stop", state(is_stopped=True)), Applied)


# -- expand, select, invalidate, exhaust -------------------------------------------------------


@pytest.mark.parametrize(
    ("parent", "reason"),
    [
        ("nobody", Reason.UNKNOWN_CANDIDATE),
        ("failed", Reason.CANDIDATE_OUT),
        ("exhausted", Reason.CANDIDATE_OUT),
        ("invalid", Reason.CANDIDATE_OUT),
    ],
)
def test_an_expansion_that_can_never_succeed_is_refused(parent: str, reason: Reason) -> None:
    assert refused("expand", parent_id=parent) is reason


def test_an_expansion_that_cannot_succeed_now_queues() -> None:
    assert queued("expand", parent_id="front") is Reason.WAITS_FOR_HOST
    assert queued("expand", parent_id="base") is Reason.WAITS_FOR_HOST
    assert queued("expand", parent_id="dominated") is Reason.WAITS_FOR_HOST
    assert queued("expand", parent_id="pending") is Reason.NOT_VERIFIED_YET
    assert queued("expand", state(is_stopped=True), parent_id="front") is Reason.STOPPED
    full = state(exhausted=("max_candidates",))
    assert queued("expand", full, parent_id="front") is Reason.LIMITS_EXHAUSTED


def test_only_the_verified_frontier_is_selected() -> None:
    assert isinstance(judged("select", candidate_id="front"), Applied)
    assert isinstance(judged("select", candidate_id="exhausted"), Applied)
    assert queued("select", candidate_id="pending") is Reason.NOT_VERIFIED_YET
    assert queued("select", candidate_id="dominated") is Reason.NOT_ON_FRONTIER
    assert refused("select", candidate_id="failed") is Reason.NOT_ON_FRONTIER
    assert refused("select", candidate_id="base") is Reason.NOT_ON_FRONTIER
    assert refused("select", candidate_id="invalid") is Reason.CANDIDATE_OUT
    assert refused("select", candidate_id="nobody") is Reason.UNKNOWN_CANDIDATE


@pytest.mark.parametrize("action", ["invalidate", "exhaust"])
def test_candidates_are_invalidated_and_exhausted_once(action: str) -> None:
    for name in ("base", "front", "pending", "failed"):
        assert isinstance(judged(action, candidate_id=name), Applied)
    assert refused(action, candidate_id="invalid") is Reason.CANDIDATE_OUT
    assert refused(action, candidate_id="nobody") is Reason.UNKNOWN_CANDIDATE
    assert refused("exhaust", candidate_id="exhausted") is Reason.CANDIDATE_OUT
    assert isinstance(judged("invalidate", candidate_id="exhausted"), Applied)


@pytest.mark.parametrize("action", ACTIONS)
def test_of_a_run_whose_baseline_is_invalid_nothing_more_comes(action: str) -> None:
    over = state(is_over=True)
    named = {"target_operation_id": "queued"} if action == "cancel" else {}
    if action in ("stop", "cancel"):
        assert isinstance(judged(action, over, **named), Applied)
    elif action == "scan_fail":
        assert refused(action, over) is Reason.UNKNOWN_SCAN
    else:
        assert refused(action, over) is Reason.RUN_OVER


# -- continue ----------------------------------------------------------------------------------

STOPPED: dict[str, Any] = {"is_stopped": True}


def test_only_a_stopped_run_is_continued() -> None:
    assert refused("continue") is Reason.NOT_STOPPED
    assert queued("continue", state(**STOPPED)) is Reason.WAITS_FOR_HOST


def test_exhausted_limits_need_an_explicit_extension() -> None:
    out = state(**STOPPED, exhausted=("max_candidates", "max_trials"))
    found = judged("continue", out, limits={"max_trials": 90})
    assert isinstance(found, Refused)
    assert found.reason is Reason.LIMITS_EXHAUSTED
    assert "max_candidates is used up" in found.message
    both = {"max_trials": 90, "max_candidates": 9}
    assert queued("continue", out, limits=both) is Reason.WAITS_FOR_HOST
    late = state(**STOPPED, exhausted=("max_trials",), spent={"max_trials": 95})
    assert refused("continue", late, limits={"max_trials": 90}) is Reason.LIMITS_EXHAUSTED


def test_an_extension_lowers_nothing_that_is_spent() -> None:
    at = state(**STOPPED)
    assert refused("continue", at, limits={"max_trials": 59}) is Reason.LIMITS_REFUSED
    shorter = {"trial_timeout_seconds": 30}
    assert queued("continue", at, limits=shorter) is Reason.WAITS_FOR_HOST


def test_an_extension_keeps_to_what_the_runner_may() -> None:
    at = state(**STOPPED)
    assert refused("continue", at, limits={"parallel_trials": 2}) is Reason.LIMITS_REFUSED
    roomy = profile(limits=limits(), independent_capacity=True)
    more = state(**STOPPED, profile=roomy)
    assert queued("continue", more, limits={"parallel_trials": 2}) is Reason.WAITS_FOR_HOST


# -- cancel, ack -------------------------------------------------------------------------------


def test_only_what_is_queued_can_be_cancelled() -> None:
    assert isinstance(judged("cancel", target_operation_id="queued"), Applied)
    for name in ("taken", "done", "gone", "broke", "ruled"):
        assert refused("cancel", target_operation_id=name) is Reason.NOT_QUEUED
    assert refused("cancel", target_operation_id="nothing") is Reason.UNKNOWN_OPERATION


def ack(name: str, at: RunState | None = None, host: str = "host-1") -> Judgement:
    return judged("ack", at, target_operation_id=name, host_id=host)


def test_a_host_takes_queued_work_and_its_own_again() -> None:
    for name in ("queued", "taken", "broke"):
        assert isinstance(ack(name), Applied)


@pytest.mark.parametrize(
    ("name", "host", "reason"),
    [
        ("nothing", "host-1", Reason.UNKNOWN_OPERATION),
        ("ruled", "host-1", Reason.NOT_HOST_WORK),
        ("done", "host-1", Reason.NOT_QUEUED),
        ("gone", "host-1", Reason.NOT_QUEUED),
        ("lost", "host-1", Reason.NOT_QUEUED),
        ("taken", "host-2", Reason.OTHER_HOST),
        ("broke", "host-2", Reason.OTHER_HOST),
    ],
)
def test_what_a_host_may_not_take(name: str, host: str, reason: Reason) -> None:
    found = ack(name, host=host)
    assert isinstance(found, Refused)
    assert found.reason is reason


def test_the_active_host_alone_takes_queued_work() -> None:
    at = state(active_host="host-1")
    assert isinstance(ack("queued", at), Applied)
    found = ack("queued", at, host="host-2")
    assert isinstance(found, Refused)
    assert found.reason is Reason.OTHER_HOST


def test_an_expansion_stays_queued_where_there_is_no_room_now() -> None:
    for at in (state(is_stopped=True), state(exhausted=("max_candidates",))):
        found = ack("queued", at)
        assert isinstance(found, Refused)
        assert found.is_passing
        assert isinstance(ack("taken", at), Applied)


# -- scans -------------------------------------------------------------------------------------


def test_a_scan_takes_a_slot_that_the_profile_allows() -> None:
    assert isinstance(judged("scan"), Applied)
    assert refused("scan", state(profile=profile())) is Reason.NO_SCANS
    assert refused("scan", state(scans=ScanState(0))) is Reason.NO_SCANS


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scans": ScanState(2, PACKET, True)}, Reason.SCAN_PENDING),
        ({"is_stopped": True}, Reason.STOPPED),
        ({"exhausted": ("max_elapsed_seconds",)}, Reason.STOPPED),
        ({"scans": ScanState(2)}, Reason.NOTHING_TO_SCAN),
    ],
)
def test_a_scan_that_cannot_be_now_may_be_later(changes: dict[str, Any], reason: Reason) -> None:
    found = judged("scan", state(**changes))
    assert isinstance(found, Refused)
    assert found.reason is reason
    assert found.is_passing


def test_insights_answer_the_packet_that_was_read() -> None:
    at = state(scans=ScanState(2, PACKET))
    assert isinstance(judged("insights", at), Applied)
    assert refused("insights") is Reason.UNKNOWN_SCAN
    other = {**RESPONSE, "packet_digest": "e"}
    assert refused("insights", at, response=other) is Reason.OTHER_PACKET
    late = state(scans=ScanState(2, replace(PACKET, is_expired=True)))
    assert refused("insights", late) is Reason.SCAN_EXPIRED
    for field in ("candidate_ids", "evidence", "code_paths"):
        (insight,) = RESPONSE["insights"]
        strange = {**RESPONSE, "insights": [{**insight, field: ["made-up"]}]}
        assert refused("insights", at, response=strange) is Reason.NOT_IN_PACKET


def test_a_scan_is_given_up_also_after_its_deadline() -> None:
    late = state(scans=ScanState(2, replace(PACKET, is_expired=True)))
    assert isinstance(judged("scan_fail", late), Applied)
    assert refused("scan_fail") is Reason.UNKNOWN_SCAN
    ended = judged("scan_fail", state(scans=ScanState(2, ended=frozenset({"s1"}))))
    assert isinstance(ended, Refused)
    assert "has ended" in ended.message


# -- always ------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.sampled_from(ACTIONS),
    st.sampled_from([*CANDIDATES, "nobody"]),
    st.sampled_from([*OPERATIONS, "nothing"]),
    st.booleans(),
    st.booleans(),
    st.sets(st.sampled_from(["max_candidates", "max_trials", "max_elapsed_seconds"])),
    st.sampled_from([None, "host-1", "host-2"]),
)
def test_every_control_comes_to_something_and_a_judgement_changes_nothing(
    action: str,
    candidate: str,
    target: str,
    is_stopped: bool,
    is_over: bool,
    exhausted: set[str],
    host: str | None,
) -> None:
    at = state(
        is_stopped=is_stopped,
        is_over=is_over,
        exhausted=tuple(sorted(exhausted)),
        active_host=host,
    )
    named: dict[str, Any] = {"candidate_id": candidate} if "candidate_id" in control(action) else {}
    named |= {"parent_id": candidate} if action == "expand" else {}
    named |= {"target_operation_id": target} if action in ("cancel", "ack") else {}
    request = made(action, **named)
    first = judge(request, at)
    assert judge(request, at) == first
    assert isinstance(first, Applied | Queued | Refused)
