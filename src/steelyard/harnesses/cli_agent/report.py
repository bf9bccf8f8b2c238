"""From how an agent's program ended and what its log says to a step and to issues. Pure."""

from __future__ import annotations

from typing import Any, Final

import orjson

from steelyard.components.environment import ExecResult
from steelyard.components.harness import Step
from steelyard.components.issues import Issue, IssueCode, Phase
from steelyard.harnesses.cli_agent.agent import Agent
from steelyard.harnesses.cli_agent.log import MAX_LOG_BYTES, MAX_STEPS, AgentLog
from steelyard.harnesses.command.words import tail
from steelyard.harnesses.program_end import fate, last_words

SHOWN_BYTES: Final = 16 * 1024
MAX_TOLD_BYTES: Final = 4 * 1024 * 1024
"""Of the steps as the agent tells them, in the last step."""


def last_step(agent: Agent, ended: ExecResult, log: AgentLog) -> Step:
    """Put the program's end into a step, with what its own log says: steps, figures, version."""
    told: list[dict[str, Any]] = []
    size = 0
    for step in log.steps[:MAX_STEPS]:
        data = step.as_json()
        size += len(orjson.dumps(data))
        if size > MAX_TOLD_BYTES:
            break
        told.append(data)
    extra: dict[str, Any] = {
        "exit_code": ended.exit_code,
        "duration_s": round(ended.duration_s, 3),
        "stderr": tail(ended.stderr, SHOWN_BYTES),
        "agent": agent.id,
        "agent_version": log.version,
        "reported": log.reported.as_json(),
        "log_steps": told,
        "log_steps_left_out": len(log.steps) - len(told) + log.left_out_steps,
        "log_lines_unread": log.unread_lines,
    }
    if log.denied:
        extra["tool_calls_denied"] = log.denied
    if not log.steps:  # else it says the same again
        extra["stdout"] = tail(ended.stdout, SHOWN_BYTES)
    return Step("system", f"{agent.id} {fate(ended)}", extra)


def issues_of(
    agent: Agent,
    ended: ExecResult,
    log: AgentLog,
    *,
    has_log: bool,
    is_whole: bool,
    timeout_s: float | None,
    max_turns: int | None,
) -> tuple[Issue, ...]:
    """Say how the agent fell short, and what of its log could not be read."""
    found: list[tuple[IssueCode, str]] = []
    if ended.timed_out:
        shown = "" if timeout_s is None else f" {timeout_s:g} s"
        found.append((IssueCode.AGENT_TIMED_OUT, f"{agent.id}'s{shown} ran out"))
    elif log.hit_turn_limit:
        found.append((IssueCode.TURN_LIMIT, f"{agent.id} used up its {max_turns or 'own'} turns"))
    elif ended.exit_code != 0 or ended.stopped_by:
        why = log.failure or last_words(ended)
        found.append((IssueCode.AGENT_FAILED, f"{agent.id} {fate(ended)}: {why}"))
    elif log.failure is not None:
        text = f"{agent.id} ended with exit code 0, and says that it failed: {log.failure}"
        found.append((IssueCode.AGENT_FAILED, text))
    if ended.truncated:
        text = f"{agent.id} printed more than is kept; the rest was dropped"
        found.append((IssueCode.OUTPUT_TRUNCATED, text))
    if not is_whole:
        text = f"{agent.id}'s log is longer than {MAX_LOG_BYTES} bytes; the rest is not read"
        found.append((IssueCode.OUTPUT_TRUNCATED, text))
    elif log.is_cut:
        text = f"{agent.id}'s log is cut off in its last line; what stands before it is read"
        found.append((IssueCode.OUTPUT_TRUNCATED, text))
    elif not has_log:
        text = f"{agent.id} left no log of its own; what it asked its model is on record"
        found.append((IssueCode.OUTPUT_TRUNCATED, text))
    return tuple(Issue.of(code, Phase.RUN, text) for code, text in found)
