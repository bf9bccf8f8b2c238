"""The closed words for why an attempt got nothing, and what each issue code says of it.

Policy is data: a table gives the class of each code; what no code says, `rules` infers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from steelyard.components.issues import IssueCode


class FailureClass(StrEnum):
    """Why an attempt failed or got no point: one class each, the first that applies."""

    ENVIRONMENT = "environment"
    MODEL_ENDPOINT = "model_endpoint"
    SCORER = "scorer"
    HARNESS = "harness"
    SETTINGS = "settings"
    STORAGE = "storage"
    CONTEXT_OVERFLOW = "context_overflow"
    TURN_LIMIT = "turn_limit"
    BUDGET = "budget"
    TIMED_OUT = "timed_out"
    REQUEST_REFUSED = "request_refused"
    AGENT_FAILED = "agent_failed"
    REFUSAL = "refusal"
    LOOP = "loop"
    TRUNCATED = "truncated"
    EMPTY_ANSWER = "empty_answer"
    TOOL_MISUSE = "tool_misuse"
    FORMAT = "format"
    WRONG_ANSWER = "wrong_answer"
    UNKNOWN = "unknown"


WORDS: Final[Mapping[FailureClass, str]] = MappingProxyType(
    {
        FailureClass.ENVIRONMENT: "the environment could not be opened, was lost, or not read out",
        FailureClass.MODEL_ENDPOINT: "the model's endpoint refused, failed or did not answer",
        FailureClass.SCORER: "the scorer crashed or took too long",
        FailureClass.HARNESS: "the harness crashed",
        FailureClass.SETTINGS: "settings, a dependency or the task itself are at fault",
        FailureClass.STORAGE: "the disk did not take what was written",
        FailureClass.CONTEXT_OVERFLOW: "the conversation grew beyond the model's context",
        FailureClass.TURN_LIMIT: "the agent used up its turns",
        FailureClass.BUDGET: "the attempt's budget was spent",
        FailureClass.TIMED_OUT: "the agent's time ran out",
        FailureClass.REQUEST_REFUSED: "the agent sent what the endpoint refuses",
        FailureClass.AGENT_FAILED: "the agent's program gave up",
        FailureClass.REFUSAL: "the model declined the task",
        FailureClass.LOOP: "the agent did or said the same over and over",
        FailureClass.TRUNCATED: "the model's output was cut off",
        FailureClass.EMPTY_ANSWER: "there was no answer where the scorer looks",
        FailureClass.TOOL_MISUSE: "tools were called wrongly, or failed again and again",
        FailureClass.FORMAT: "the answer has not the form that is asked for",
        FailureClass.WRONG_ANSWER: "an answer that is wrong; these rules see no other cause",
        FailureClass.UNKNOWN: "a cause that nobody named",
    }
)
"""What each class means, for people."""

CLASS_OF_CODE: Final[Mapping[IssueCode, FailureClass | None]] = MappingProxyType(
    {
        IssueCode.CONFIGURATION: FailureClass.SETTINGS,
        IssueCode.DEPENDENCY_MISSING: FailureClass.SETTINGS,
        IssueCode.SECRET_UNAVAILABLE: FailureClass.SETTINGS,
        IssueCode.TASK_INVALID: FailureClass.SETTINGS,
        IssueCode.ENVIRONMENT_OPEN_FAILED: FailureClass.ENVIRONMENT,
        IssueCode.ENVIRONMENT_OPEN_TIMED_OUT: FailureClass.ENVIRONMENT,
        IssueCode.ENVIRONMENT_LOST: FailureClass.ENVIRONMENT,
        IssueCode.COLLECT_FAILED: FailureClass.ENVIRONMENT,
        IssueCode.HARNESS_CRASHED: FailureClass.HARNESS,
        IssueCode.MODEL_ENDPOINT_REJECTED: FailureClass.MODEL_ENDPOINT,
        IssueCode.MODEL_UNAVAILABLE: FailureClass.MODEL_ENDPOINT,
        IssueCode.MODEL_TIMED_OUT: FailureClass.MODEL_ENDPOINT,
        IssueCode.MODEL_RESPONSE_INVALID: FailureClass.MODEL_ENDPOINT,
        IssueCode.MODEL_REQUEST_REFUSED: FailureClass.REQUEST_REFUSED,
        IssueCode.MODEL_OUTPUT_TOO_LARGE: FailureClass.TRUNCATED,
        IssueCode.CONTEXT_OVERFLOW: FailureClass.CONTEXT_OVERFLOW,
        IssueCode.TURN_LIMIT: FailureClass.TURN_LIMIT,
        IssueCode.ATTEMPT_BUDGET: FailureClass.BUDGET,
        IssueCode.AGENT_FAILED: FailureClass.AGENT_FAILED,
        IssueCode.AGENT_TIMED_OUT: FailureClass.TIMED_OUT,
        IssueCode.SCORER_CRASHED: FailureClass.SCORER,
        IssueCode.SCORER_TIMED_OUT: FailureClass.SCORER,
        IssueCode.STORAGE_FAILED: FailureClass.STORAGE,
        IssueCode.UNKNOWN: FailureClass.UNKNOWN,
        # Warnings end no attempt; that output was cut is looked at by a rule.
        IssueCode.CLEANUP_FAILED: None,
        IssueCode.OUTPUT_TRUNCATED: None,
        IssueCode.ARTIFACT_FLAGGED: None,
        IssueCode.USAGE_UNKNOWN: None,
        IssueCode.REUSE_REFUSED: None,
    }
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a class was seen."""

    failure: FailureClass
    where: str
    """As `issue 1 (run)`, `step 7, result of search`, `answer`; steps count from 1."""
    quote: str = ""
    """A few words from there, on one line."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why one attempt got nothing."""

    cause: Evidence
    is_recorded: bool
    """True where an issue code says so; else rules infer it from texts."""
    signs: tuple[Evidence, ...] = ()
    """Other classes that were seen in it, which may be behind the cause."""
