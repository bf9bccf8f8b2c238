"""From what an execution has gathered to its result."""

from __future__ import annotations

from steelyard.components.artifacts import EvaluationMode
from steelyard.components.environment import Environment
from steelyard.components.issues import IssueCode, Outcome, Phase, Severity
from steelyard.components.values import NO_USAGE, WEAKEST_FIRST, Trust, Usage
from steelyard.engine.spec import ExecutionResult, PhaseTimes, SavedWork
from steelyard.engine.work import Work


def outcome_of(work: Work) -> Outcome:
    """What the issues make of an execution that was not cancelled."""
    if not work.issues:
        return Outcome.SCORED
    severities = {issue.severity for issue in work.issues}
    if Severity.FATAL in severities:
        return Outcome.FAILED_FATAL
    if work.is_partial and work.evaluation is not None and not work.fell_short:
        return Outcome.SCORED
    if any(issue.code is IssueCode.AGENT_TIMED_OUT for issue in work.issues):
        return Outcome.TIMED_OUT
    return Outcome.FAILED_ERROR if Severity.ERROR in severities else Outcome.SCORED


def _note_uncounted(work: Work, usage: Usage) -> None:
    """Warn where calls came without token counts: what they cost nobody knows."""
    if not (uncounted := work.uncounted_calls):
        return
    made = usage.requests + sum(client.usage.requests for client in work.scorer_clients)
    work.phase = Phase.RUN
    work.add_issue(
        IssueCode.USAGE_UNKNOWN,
        f"{uncounted} of {made} model calls came without token counts that "
        "can be right: what they cost is not known",
    )


def _work_at_hand(work: Work) -> SavedWork | None:
    """What it takes to score once more, where only scoring failed."""
    grave = [issue for issue in work.issues if issue.severity is not Severity.WARNING]
    has_mode = hasattr(work, "input") and work.input.mode is not EvaluationMode.REUSE
    if not has_mode or not grave or any(i.phase is not Phase.EVALUATE for i in grave):
        return None
    if work.spec.saved is not None:
        return work.spec.saved
    is_kept = work.spec.place is not None and work.inputs_are_whole
    if work.input.carries_files and not is_kept:
        return None
    inputs = {path: str(source) for path, source in work.inputs.items()}
    return SavedWork(work.answer, tuple(work.steps), inputs, work.checkpoint)


def result_of(work: Work, outcome: Outcome) -> ExecutionResult:
    """Sum up the execution."""
    evaluation = work.evaluation
    usage, succeeded = work.consumed()
    agent_usage = usage
    _note_uncounted(work, usage)
    details = evaluation.details if evaluation is not None else {}
    if work.gateway is not None:
        details = work.gateway.tree(details)
        work.gateway.forget()
    if evaluation is not None and evaluation.usage is not NO_USAGE:
        usage = usage + evaluation.usage
    for client in work.scorer_clients:
        usage = usage + client.usage
    environment, saved = work.services.environment, work.spec.saved
    return ExecutionResult(
        outcome=outcome,
        metrics=evaluation.metrics if evaluation is not None else {},
        answer=work.answer,
        issues=tuple(work.issues),
        usage=usage,
        agent_usage=agent_usage,
        times=PhaseTimes(
            work.setup_s, work.agent_s, work.waited_s, work.collect_s, work.evaluate_s
        ),
        trust=_weakest(work, environment),
        environment=work.description or {"provider": environment.id, "image": None, "digest": None},
        # Those of saved work lie beside the record that they were saved with.
        steps=tuple(work.steps) if saved is None else (),
        artifacts=tuple(work.artifacts),
        details=details,
        request_fault=work.request_fault,
        model_calls_succeeded=succeeded,
        mode=work.input.mode if hasattr(work, "input") else None,
        checkpoint=work.checkpoint if saved is None else saved.checkpoint,
        drops_inputs=work.drops_inputs,
        work=_work_at_hand(work),
        charge=work.charge(),
    )


def _weakest(work: Work, environment: Environment) -> Trust | None:
    """The weakest word that holds; None where nothing ran anywhere."""
    words = list(work.trusts)
    if work.evaluation is not None and work.evaluation.trust is not None:
        words.append(work.evaluation.trust)
    if not words and environment.best_trust is Trust.HOST:
        return Trust.HOST
    return min(words, key=WEAKEST_FIRST.index) if words else None
