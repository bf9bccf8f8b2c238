"""Small attempts with the class that a person gives them: typical ones, and such as look like it.

Of each class there is at least one that has it (a positive) and one that only looks so (a hard
negative, whose own class is another).
"""

from __future__ import annotations

from steelyard.analyzers.failures.classes import FailureClass as F
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase, Severity
from tests.analyzers.labelled_more import MORE
from tests.analyzers.labelling import (
    WRONG,
    Labelled,
    calls,
    failed,
    reason,
    says,
)

__all__ = ["CASES", "Labelled", "calls", "says"]

CASES: dict[str, Labelled] = {
    # -- what the record says -------------------------------------------------------------------
    "no sandbox": Labelled(F.ENVIRONMENT, **failed(IssueCode.ENVIRONMENT_OPEN_FAILED)),
    "sandbox lost": Labelled(F.ENVIRONMENT, **failed(IssueCode.ENVIRONMENT_LOST)),
    "files not read out": Labelled(F.ENVIRONMENT, **failed(IssueCode.COLLECT_FAILED)),
    "429 to the end": Labelled(F.MODEL_ENDPOINT, **failed(IssueCode.MODEL_UNAVAILABLE)),
    "401": Labelled(F.MODEL_ENDPOINT, **failed(IssueCode.MODEL_ENDPOINT_REJECTED)),
    "model too slow": Labelled(F.MODEL_ENDPOINT, **failed(IssueCode.MODEL_TIMED_OUT)),
    "no chat answer": Labelled(F.MODEL_ENDPOINT, **failed(IssueCode.MODEL_RESPONSE_INVALID)),
    "scorer raised": Labelled(F.SCORER, "42", **failed(IssueCode.SCORER_CRASHED)),
    "scorer too slow": Labelled(F.SCORER, "42", **failed(IssueCode.SCORER_TIMED_OUT)),
    "scorer says timeout": Labelled(
        F.SCORER,
        "42",
        **failed(IssueCode.SCORER_CRASHED, "the model's context length was asked", Phase.EVALUATE),
        looks_like=F.CONTEXT_OVERFLOW,
    ),
    "harness raised": Labelled(F.HARNESS, **failed(IssueCode.HARNESS_CRASHED)),
    "no key": Labelled(F.SETTINGS, **failed(IssueCode.SECRET_UNAVAILABLE)),
    "bad task": Labelled(F.SETTINGS, **failed(IssueCode.TASK_INVALID)),
    "disk full": Labelled(F.STORAGE, **failed(IssueCode.STORAGE_FAILED)),
    "context full": Labelled(F.CONTEXT_OVERFLOW, **failed(IssueCode.CONTEXT_OVERFLOW)),
    "400 for the context": Labelled(
        F.CONTEXT_OVERFLOW,
        **failed(
            IssueCode.MODEL_REQUEST_REFUSED,
            "400: This model's maximum context length is 8192 tokens, you asked for 9000",
        ),
        looks_like=F.REQUEST_REFUSED,
    ),
    "400 for a parameter": Labelled(
        F.REQUEST_REFUSED,
        **failed(IssueCode.MODEL_REQUEST_REFUSED, "400: temperature must be below 2"),
        looks_like=F.CONTEXT_OVERFLOW,
    ),
    "program died of its model call": Labelled(
        F.CONTEXT_OVERFLOW,
        **failed(IssueCode.AGENT_FAILED, "the program ended with 1"),
        steps=[
            says(
                "", fault="model_request_refused", fault_message="prompt is too long: 210000 tokens"
            )
        ],
        looks_like=F.AGENT_FAILED,
    ),
    "program died although its calls went well": Labelled(
        F.AGENT_FAILED,
        **failed(IssueCode.AGENT_FAILED, "the program ended with 1"),
        steps=[
            says("", fault="model_unavailable", fault_message="503"),
            says("better now", "stop"),
        ],
        looks_like=F.MODEL_ENDPOINT,
    ),
    "program of another cause": Labelled(
        F.AGENT_FAILED, **failed(IssueCode.AGENT_FAILED, "the program ended with 137")
    ),
    "turns used up": Labelled(F.TURN_LIMIT, **failed(IssueCode.TURN_LIMIT)),
    "turns used up in a loop": Labelled(
        F.TURN_LIMIT,
        **failed(IssueCode.TURN_LIMIT),
        steps=[calls("ls", {"path": "."}, "a b")] * 9,
        looks_like=F.LOOP,
    ),
    "money spent": Labelled(F.BUDGET, **failed(IssueCode.ATTEMPT_BUDGET)),
    "time out": Labelled(
        F.TIMED_OUT,
        issues=(Issue.of(IssueCode.AGENT_TIMED_OUT, Phase.RUN, "300 s"),),
        outcome=Outcome.TIMED_OUT,
    ),
    "time out without a word": Labelled(F.TIMED_OUT, outcome=Outcome.TIMED_OUT),
    "answer of 20 MB": Labelled(F.TRUNCATED, **failed(IssueCode.MODEL_OUTPUT_TOO_LARGE)),
    "our own fault": Labelled(F.UNKNOWN, **failed(IssueCode.UNKNOWN)),
    "failed without an issue": Labelled(F.UNKNOWN, outcome=Outcome.FAILED_FATAL),
    "an earlier execution's fault": Labelled(
        F.TURN_LIMIT,
        issues=(
            Issue(Severity.FATAL, Phase.SETUP, IssueCode.ENVIRONMENT_LOST, "gone", 1),
            Issue(Severity.ERROR, Phase.RUN, IssueCode.TURN_LIMIT, "20 turns", 2),
        ),
        outcome=Outcome.FAILED_ERROR,
        looks_like=F.ENVIRONMENT,
    ),
    "scorer says that a test crashed": Labelled(
        F.WRONG_ANSWER, "42", **reason("test_add crashed: exit code 1"), looks_like=F.SCORER
    ),
    "answer about a limit on turns": Labelled(
        F.WRONG_ANSWER,
        "A game of this kind ends after a maximum of 20 turns.",
        **WRONG,
        looks_like=F.TURN_LIMIT,
    ),
    "endpoint took too long": Labelled(
        F.MODEL_ENDPOINT,
        **failed(IssueCode.MODEL_TIMED_OUT, "no answer within 600 seconds"),
        looks_like=F.TIMED_OUT,
    ),
    "account without money": Labelled(
        F.MODEL_ENDPOINT,
        **failed(IssueCode.MODEL_ENDPOINT_REJECTED, "402: your budget is spent"),
        looks_like=F.BUDGET,
    ),
    "program died with a traceback": Labelled(
        F.AGENT_FAILED,
        **failed(IssueCode.AGENT_FAILED, "Traceback: harness.py crashed"),
        looks_like=F.HARNESS,
    ),
    "400 for a setting": Labelled(
        F.REQUEST_REFUSED,
        **failed(IssueCode.MODEL_REQUEST_REFUSED, "400: unknown setting 'top_z'"),
        looks_like=F.SETTINGS,
    ),
    "program filled its disk": Labelled(
        F.AGENT_FAILED,
        **failed(IssueCode.AGENT_FAILED, "OSError: No space left on device"),
        looks_like=F.STORAGE,
    ),
    "artifacts that were left out": Labelled(
        F.WRONG_ANSWER,
        "41",
        issues=(Issue.of(IssueCode.OUTPUT_TRUNCATED, Phase.COLLECT, "artifacts: 2 × link"),),
        **WRONG,
        looks_like=F.TRUNCATED,
    ),
    "scored after a retry": Labelled(
        F.WRONG_ANSWER,
        "41",
        issues=(Issue.of(IssueCode.MODEL_UNAVAILABLE, Phase.RUN, "503"),),
        **WRONG,
        looks_like=F.MODEL_ENDPOINT,
    ),
    # -- refusals -------------------------------------------------------------------------------
    "refusal": Labelled(F.REFUSAL, "I'm sorry, but I can't help with that request.", **WRONG),
    "typographic apostrophe": Labelled(
        F.REFUSAL, "I\u2019m sorry, I can\u2019t assist with that.", **WRONG
    ),
    "as an AI": Labelled(
        F.REFUSAL, "As an AI language model, I cannot provide instructions for this.", **WRONG
    ),
    "unable": Labelled(F.REFUSAL, "I am unable to help with this.", **WRONG),
    "declines": Labelled(F.REFUSAL, "Thank you. I must respectfully decline.", **WRONG),
    "German": Labelled(F.REFUSAL, "Es tut mir leid, aber dabei kann ich nicht helfen.", **WRONG),
    "French": Labelled(F.REFUSAL, "Désolé, je ne peux pas vous aider.", **WRONG),
    "Spanish": Labelled(F.REFUSAL, "Lo siento, pero no puedo ayudar con eso.", **WRONG),
    "Portuguese": Labelled(F.REFUSAL, "Desculpe, mas não posso ajudar.", **WRONG),
    "Italian": Labelled(F.REFUSAL, "Mi dispiace, ma non posso farlo.", **WRONG),
    "Russian": Labelled(F.REFUSAL, "Извините, но я не могу помочь.", **WRONG),
    "Chinese": Labelled(F.REFUSAL, "抱歉,我无法提供帮助。", **WRONG),
    "Japanese": Labelled(F.REFUSAL, "申し訳ありませんが、お手伝いできません。", **WRONG),
    **MORE,
}
