"""From a record, an answer and a course to one class with its evidence. Pure.

What a record says is taken first, then what texts show, surest first; `wrong_answer` is what is
left. `RULES_VERSION` changes whenever a class may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from steelyard.analyzers.failures.classes import CLASS_OF_CODE, Diagnosis, Evidence, FailureClass
from steelyard.analyzers.failures.course import Course
from steelyard.analyzers.failures.phrases import (
    LENGTH_STOPS,
    REFUSAL_STOPS,
    is_wrong_form,
    quote,
    refusal_in,
    repeated_end,
    says_nothing_is_there,
    speaks_of_context,
)
from steelyard.components.analyzer import FinishedAttempt
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase, Severity

RULES_VERSION: Final = "2"
_MAX_REASONS: Final = 50


@dataclass(frozen=True, slots=True)
class Case:
    """All that the rules look at of one attempt."""

    attempt: FinishedAttempt
    answer: str | None
    """As much of it as is looked at; None where there is none."""
    course: Course

    @property
    def has_answer(self) -> bool:
        """True where it answered more than blanks."""
        return bool(self.answer and self.answer.strip())

    def last_words(self) -> Iterator[tuple[str, str]]:
        """Iterate over what it said last: (text, where); once where that is its answer."""
        answer, said = self.answer or "", self.course.last_text
        if answer:
            yield answer, "answer"
        if said and said != answer:
            yield said, f"step {self.course.last_text_step}, message"

    def reasons(self) -> Iterator[tuple[str, str]]:
        """Iterate over what its scorer said: (where, reason)."""
        details = self.attempt.details
        reason = details.get("reason")
        if isinstance(reason, str):
            yield "scorer's reason", reason
        reasons = details.get("reasons")
        if isinstance(reasons, Mapping):
            for name, text in list(reasons.items())[:_MAX_REASONS]:
                if isinstance(text, str):
                    yield f"scorer's reason {quote(str(name), 60)}", text


def diagnose(case: Case) -> Diagnosis:
    """Say why an attempt that failed, or was scored and got nothing, got nothing."""
    if case.attempt.outcome is Outcome.SCORED:
        found = list(_seen(case))
        if found:
            return Diagnosis(found[0], False, _others(found[0], found))
        shown = Evidence(FailureClass.WRONG_ANSWER, "answer", quote(case.answer or ""))
        where, reason = next(case.reasons(), ("", ""))
        if reason:
            shown = Evidence(FailureClass.WRONG_ANSWER, where, quote(reason))
        return Diagnosis(shown, False, tuple(_signs(case)))
    cause = _recorded(case)
    return Diagnosis(cause, True, _others(cause, [*_seen(case), *_signs(case)]))


def _others(cause: Evidence, found: list[Evidence]) -> tuple[Evidence, ...]:
    """Leave out the cause itself, and what says the same twice."""
    by_class = {one.failure: one for one in reversed(found) if one.failure is not cause.failure}
    # An attempt that ended early mostly has no answer: that tells nothing more.
    by_class.pop(FailureClass.EMPTY_ANSWER, None)
    return tuple(one for one in found if by_class.get(one.failure) is one)


def _recorded(case: Case) -> Evidence:
    """The class that the issues of its last execution name."""
    issues = list(enumerate(case.attempt.issues, 1))
    last = max((issue.execution for _, issue in issues), default=1)
    for severity in (Severity.FATAL, Severity.ERROR):
        for number, issue in issues:
            if issue.severity is severity and issue.execution == last:
                return _of_issue(case, number, issue)
    if case.attempt.outcome is Outcome.TIMED_OUT:
        return Evidence(FailureClass.TIMED_OUT, "outcome", case.attempt.outcome.value)
    return Evidence(FailureClass.UNKNOWN, "outcome", case.attempt.outcome.value)


def _of_issue(case: Case, number: int, issue: Issue) -> Evidence:
    failure = CLASS_OF_CODE[issue.code] or FailureClass.UNKNOWN
    where = f"issue {number} ({issue.phase.value}, {issue.code.value})"
    if issue.code is IssueCode.MODEL_REQUEST_REFUSED and speaks_of_context(issue.message):
        failure = FailureClass.CONTEXT_OVERFLOW
    if issue.code is IssueCode.AGENT_FAILED and case.course.fault is not None:
        # The program gave up because its last model call failed: that call's fault is the cause.
        code, message, step = case.course.fault
        behind = CLASS_OF_CODE.get(IssueCode(code)) if code in set(IssueCode) else None
        if code == IssueCode.MODEL_REQUEST_REFUSED and speaks_of_context(message):
            behind = FailureClass.CONTEXT_OVERFLOW
        if behind is not None:
            return Evidence(behind, f"step {step}, model call", quote(message or code))
    return Evidence(failure, where, quote(issue.message))


def _refused_by_stop(case: Case) -> Evidence | None:
    stop = case.course.stop
    if stop is None or stop[0] not in REFUSAL_STOPS:
        return None
    return Evidence(FailureClass.REFUSAL, f"step {stop[1]}, stop reason", quote(stop[0]))


def _repeats_itself(case: Case) -> Evidence | None:
    for text, where in case.last_words():
        unit = repeated_end(text)
        if unit is not None:
            return Evidence(FailureClass.LOOP, f"{where}, its end", quote(unit))
    return None


def _truncated(case: Case) -> Evidence | None:
    stop = case.course.stop
    if stop is not None and stop[0] in LENGTH_STOPS:
        end = f"{stop[0]}: …{case.course.last_text[-80:]}"
        return Evidence(FailureClass.TRUNCATED, f"step {stop[1]}, stop reason", quote(end))
    for number, issue in enumerate(case.attempt.issues, 1):
        # What was left out of the files that were taken afterwards is no word of the agent's.
        if issue.code is IssueCode.OUTPUT_TRUNCATED and issue.phase is Phase.RUN:
            where = f"issue {number} ({issue.phase.value}, {issue.code.value})"
            return Evidence(FailureClass.TRUNCATED, where, quote(issue.message))
    return None


def _refused(case: Case) -> Evidence | None:
    for text, where in case.last_words():
        words = refusal_in(text)
        if words is not None:
            return Evidence(FailureClass.REFUSAL, where, words)
    return None


def _empty(case: Case) -> Evidence | None:
    reasons = list(case.reasons())
    for where, reason in reasons:
        if says_nothing_is_there(reason):
            return Evidence(FailureClass.EMPTY_ANSWER, where, quote(reason))
    # Whoever worked with tools may have left its work elsewhere than in an answer.
    if not case.has_answer and (not case.course.calls or not reasons):
        where = "record" if case.attempt.answer is None else "answer"
        return Evidence(FailureClass.EMPTY_ANSWER, where)
    return None


def _looped(case: Case) -> Evidence | None:
    """A loop is the cause where it makes up at least half of what the agent did."""
    return _loop(case) if case.course.repeated_share >= 0.5 else None


def _loop(case: Case) -> Evidence | None:
    found = case.course.repetition
    if found is None:
        return None
    what = "" if found.period == 1 else f", in rounds of {found.period}"
    where = f"{quote(found.seen.where)}, {found.rounds} times{what}"
    return Evidence(FailureClass.LOOP, where, quote(found.seen.quote))


def _misused_tools(case: Case) -> Evidence | None:
    """Tools are the cause where at least half of two and more calls failed, or the last three."""
    course = case.course
    many = course.errors >= 2 and course.failed_share >= 0.5
    return _tool_errors(case) if many or course.failing_at_end >= 3 else None


def _tool_errors(case: Case) -> Evidence | None:
    seen = case.course.bad_call
    if seen is None:
        return None
    return Evidence(FailureClass.TOOL_MISUSE, seen.where, seen.quote)


def _wrong_form(case: Case) -> Evidence | None:
    for where, reason in case.reasons():
        if is_wrong_form(reason, case.answer or ""):
            return Evidence(FailureClass.FORMAT, where, quote(reason))
    return None


_CAUSES: Final[tuple[Callable[[Case], Evidence | None], ...]] = (
    _refused_by_stop,
    _repeats_itself,  # before the cut: whoever repeats itself is cut off at last
    _truncated,
    _refused,
    _empty,
    _looped,
    _misused_tools,
    _wrong_form,
)
"""Causes that texts show, surest first."""


def _seen(case: Case) -> Iterator[Evidence]:
    return (found for rule in _CAUSES if (found := rule(case)) is not None)


def _signs(case: Case) -> Iterator[Evidence]:
    """What was seen but is too little to be called the cause."""
    course = case.course
    loop = _loop(case)
    if loop is not None:
        yield loop
    if course.malformed or course.unknown or course.errors >= 3:
        tools = _tool_errors(case)
        if tools is not None:
            yield tools


def details_of(found: Evidence) -> dict[str, Any]:
    """Give evidence as JSON."""
    return {"class": found.failure.value, "where": found.where, "quote": found.quote}
