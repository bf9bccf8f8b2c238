"""Small attempts with the class that a person gives them: typical ones, and such as look like it.

Of each class there is at least one that has it (a positive) and one that only looks so (a hard
negative, whose own class is another).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.analyzers.failures.classes import FailureClass as F
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase, Severity
from steelyard.components.model import ToolCall
from steelyard.components.steps import Step, ToolResult
from steelyard.results.records import AttemptRecord


@dataclass(frozen=True)
class Labelled:
    label: F
    answer: str | None = None
    issues: tuple[Issue, ...] = ()
    outcome: Outcome = Outcome.SCORED
    details: Mapping[str, Any] = field(default_factory=dict)
    steps: Sequence[Step] = ()
    looks_like: F | None = None
    """Given: a hard negative, which a careless rule would call so."""

    def record(self, name: str) -> AttemptRecord:
        return AttemptRecord(
            name,
            1,
            self.outcome,
            metrics={"passed": False} if self.outcome is Outcome.SCORED else {},
            answer=self.answer,
            issues=self.issues,
            details=self.details,
            executions=1,
            trajectory={"path": "x"} if self.steps else None,
        )


def _failed(code: IssueCode, message: str = "because", phase: Phase = Phase.RUN) -> dict[str, Any]:
    issue = Issue.of(code, phase, message)
    is_fatal = issue.severity == "FATAL"
    return {
        "issues": (issue,),
        "outcome": Outcome.FAILED_FATAL if is_fatal else Outcome.FAILED_ERROR,
    }


def says(text: str, stop: str | None = None, **extra: Any) -> Step:
    return Step("agent", text, {**({"stop_reason": stop} if stop else {}), **extra})


def calls(name: str, arguments: Any, result: str | None, number: int = 1) -> Step:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = ToolCall(f"c{number}", name, written)
    results = () if result is None else (ToolResult(f"c{number}", result),)
    return Step("agent", "", {}, (call,), results)


def reason(text: str) -> dict[str, Any]:
    return {"details": {"reasons": {"exact": text}}}


WRONG = reason("expected '42'")
SEARCH = [calls("search", {"q": f"word {n}"}, f"{n} hits") for n in range(8)]
FORTY_TWO = "After looking at all of it, the answer is 41."
TABLE = "\n".join(f"| {n} | {n * n} | {'even' if n % 2 == 0 else 'odd'} |" for n in range(200))

CASES: dict[str, Labelled] = {
    # -- what the record says -------------------------------------------------------------------
    "no sandbox": Labelled(F.ENVIRONMENT, **_failed(IssueCode.ENVIRONMENT_OPEN_FAILED)),
    "sandbox lost": Labelled(F.ENVIRONMENT, **_failed(IssueCode.ENVIRONMENT_LOST)),
    "files not read out": Labelled(F.ENVIRONMENT, **_failed(IssueCode.COLLECT_FAILED)),
    "429 to the end": Labelled(F.MODEL_ENDPOINT, **_failed(IssueCode.MODEL_UNAVAILABLE)),
    "401": Labelled(F.MODEL_ENDPOINT, **_failed(IssueCode.MODEL_ENDPOINT_REJECTED)),
    "model too slow": Labelled(F.MODEL_ENDPOINT, **_failed(IssueCode.MODEL_TIMED_OUT)),
    "no chat answer": Labelled(F.MODEL_ENDPOINT, **_failed(IssueCode.MODEL_RESPONSE_INVALID)),
    "scorer raised": Labelled(F.SCORER, "42", **_failed(IssueCode.SCORER_CRASHED)),
    "scorer too slow": Labelled(F.SCORER, "42", **_failed(IssueCode.SCORER_TIMED_OUT)),
    "scorer says timeout": Labelled(
        F.SCORER,
        "42",
        **_failed(IssueCode.SCORER_CRASHED, "the model's context length was asked", Phase.EVALUATE),
        looks_like=F.CONTEXT_OVERFLOW,
    ),
    "harness raised": Labelled(F.HARNESS, **_failed(IssueCode.HARNESS_CRASHED)),
    "no key": Labelled(F.SETTINGS, **_failed(IssueCode.SECRET_UNAVAILABLE)),
    "bad task": Labelled(F.SETTINGS, **_failed(IssueCode.TASK_INVALID)),
    "disk full": Labelled(F.STORAGE, **_failed(IssueCode.STORAGE_FAILED)),
    "context full": Labelled(F.CONTEXT_OVERFLOW, **_failed(IssueCode.CONTEXT_OVERFLOW)),
    "400 for the context": Labelled(
        F.CONTEXT_OVERFLOW,
        **_failed(
            IssueCode.MODEL_REQUEST_REFUSED,
            "400: This model's maximum context length is 8192 tokens, you asked for 9000",
        ),
        looks_like=F.REQUEST_REFUSED,
    ),
    "400 for a parameter": Labelled(
        F.REQUEST_REFUSED,
        **_failed(IssueCode.MODEL_REQUEST_REFUSED, "400: temperature must be below 2"),
        looks_like=F.CONTEXT_OVERFLOW,
    ),
    "program died of its model call": Labelled(
        F.CONTEXT_OVERFLOW,
        **_failed(IssueCode.AGENT_FAILED, "the program ended with 1"),
        steps=[
            says(
                "", fault="model_request_refused", fault_message="prompt is too long: 210000 tokens"
            )
        ],
        looks_like=F.AGENT_FAILED,
    ),
    "program died although its calls went well": Labelled(
        F.AGENT_FAILED,
        **_failed(IssueCode.AGENT_FAILED, "the program ended with 1"),
        steps=[
            says("", fault="model_unavailable", fault_message="503"),
            says("better now", "stop"),
        ],
        looks_like=F.MODEL_ENDPOINT,
    ),
    "program of another cause": Labelled(
        F.AGENT_FAILED, **_failed(IssueCode.AGENT_FAILED, "the program ended with 137")
    ),
    "turns used up": Labelled(F.TURN_LIMIT, **_failed(IssueCode.TURN_LIMIT)),
    "turns used up in a loop": Labelled(
        F.TURN_LIMIT,
        **_failed(IssueCode.TURN_LIMIT),
        steps=[calls("ls", {"path": "."}, "a b")] * 9,
        looks_like=F.LOOP,
    ),
    "money spent": Labelled(F.BUDGET, **_failed(IssueCode.ATTEMPT_BUDGET)),
    "time out": Labelled(
        F.TIMED_OUT,
        issues=(Issue.of(IssueCode.AGENT_TIMED_OUT, Phase.RUN, "300 s"),),
        outcome=Outcome.TIMED_OUT,
    ),
    "time out without a word": Labelled(F.TIMED_OUT, outcome=Outcome.TIMED_OUT),
    "answer of 20 MB": Labelled(F.TRUNCATED, **_failed(IssueCode.MODEL_OUTPUT_TOO_LARGE)),
    "our own fault": Labelled(F.UNKNOWN, **_failed(IssueCode.UNKNOWN)),
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
        **_failed(IssueCode.MODEL_TIMED_OUT, "no answer within 600 seconds"),
        looks_like=F.TIMED_OUT,
    ),
    "account without money": Labelled(
        F.MODEL_ENDPOINT,
        **_failed(IssueCode.MODEL_ENDPOINT_REJECTED, "402: your budget is spent"),
        looks_like=F.BUDGET,
    ),
    "program died with a traceback": Labelled(
        F.AGENT_FAILED,
        **_failed(IssueCode.AGENT_FAILED, "Traceback: harness.py crashed"),
        looks_like=F.HARNESS,
    ),
    "400 for a setting": Labelled(
        F.REQUEST_REFUSED,
        **_failed(IssueCode.MODEL_REQUEST_REFUSED, "400: unknown setting 'top_z'"),
        looks_like=F.SETTINGS,
    ),
    "program filled its disk": Labelled(
        F.AGENT_FAILED,
        **_failed(IssueCode.AGENT_FAILED, "OSError: No space left on device"),
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
    "content filter": Labelled(
        F.REFUSAL, "", steps=[says("", "content_filter")], **WRONG, looks_like=F.EMPTY_ANSWER
    ),
    "cannot find": Labelled(
        F.WRONG_ANSWER,
        "I can't find the bug, but I think it is in line 3.",
        **WRONG,
        looks_like=F.REFUSAL,
    ),
    "quoted": Labelled(
        F.WRONG_ANSWER,
        'The clerk says "I can\'t help you" and leaves.',
        **WRONG,
        looks_like=F.REFUSAL,
    ),
    "cannot help but": Labelled(
        F.WRONG_ANSWER, "I can't help but notice that it is 41.", **WRONG, looks_like=F.REFUSAL
    ),
    "cannot provide a number": Labelled(
        F.WRONG_ANSWER,
        "I cannot provide more than an estimate: 41.",
        **WRONG,
        looks_like=F.REFUSAL,
    ),
    "sorry and goes on": Labelled(
        F.WRONG_ANSWER, "Sorry, I miscounted before. It is 41.", **WRONG, looks_like=F.REFUSAL
    ),
    "a long letter of refusal": Labelled(
        F.WRONG_ANSWER,
        "I'm sorry, but I can't help with the delivery. "
        + "We shall see to it. " * 20
        + "".join(f"Item {n} will be sent on day {n}. " for n in range(60)),
        **WRONG,
        looks_like=F.REFUSAL,
    ),
    # -- loops ----------------------------------------------------------------------------------
    "same call": Labelled(F.LOOP, "41", steps=[calls("ls", {"path": "."}, "a b")] * 6, **WRONG),
    "round of two": Labelled(
        F.LOOP,
        "41",
        steps=[calls("read", {"f": "a"}, "x"), calls("read", {"f": "b"}, "y")] * 5,
        **WRONG,
    ),
    "same words": Labelled(
        F.LOOP, "I will now look.", steps=[says("I will now look.")] * 5, **WRONG
    ),
    "answer that repeats": Labelled(F.LOOP, "It is as I said. " * 80, **WRONG),
    "cut off while repeating": Labelled(
        F.LOOP,
        "no no " * 300,
        steps=[says("no no " * 300, "length")],
        **WRONG,
        looks_like=F.TRUNCATED,
    ),
    "polling": Labelled(
        F.WRONG_ANSWER,
        "41",
        steps=[calls("status", {"job": 1}, f"{n * 10}% done") for n in range(9)],
        **WRONG,
        looks_like=F.LOOP,
    ),
    "three tries": Labelled(
        F.WRONG_ANSWER,
        "41",
        steps=[calls("ls", {"path": "."}, "a b")] * 3,
        **WRONG,
        looks_like=F.LOOP,
    ),
    "four tries among many": Labelled(
        F.WRONG_ANSWER,
        "41",
        steps=[*SEARCH, *[calls("ls", {}, "a")] * 4],
        **WRONG,
        looks_like=F.LOOP,
    ),
    "a table": Labelled(F.WRONG_ANSWER, TABLE, **WRONG, looks_like=F.LOOP),
    "a rule of dashes": Labelled(F.WRONG_ANSWER, "41\n" + "-" * 900, **WRONG, looks_like=F.LOOP),
    # -- truncation -----------------------------------------------------------------------------
    "max tokens": Labelled(
        F.TRUNCATED, "First we add the", steps=[says("First we add the", "length")], **WRONG
    ),
    "anthropic max tokens": Labelled(
        F.TRUNCATED, "First", steps=[says("First", "max_tokens")], **WRONG
    ),
    "all tokens thought away": Labelled(
        F.TRUNCATED,
        "",
        steps=[says("", "length")],
        **reason("no answer"),
        looks_like=F.EMPTY_ANSWER,
    ),
    "output cut by us": Labelled(
        F.TRUNCATED,
        "x" * 50,
        issues=(Issue.of(IssueCode.OUTPUT_TRUNCATED, Phase.RUN, "stdout above 10 MiB"),),
        **WRONG,
    ),
    "cut in the middle only": Labelled(
        F.WRONG_ANSWER,
        "41",
        steps=[says("First we", "length"), says("41", "stop")],
        **WRONG,
        looks_like=F.TRUNCATED,
    ),
    # -- empty ----------------------------------------------------------------------------------
    "no answer": Labelled(F.EMPTY_ANSWER, None, **reason("no answer")),
    "blanks": Labelled(F.EMPTY_ANSWER, " \n ", **WRONG),
    "no file": Labelled(F.EMPTY_ANSWER, "done", **reason("no file out/report.md")),
    "nothing recorded": Labelled(F.EMPTY_ANSWER, None),
    "work without words": Labelled(
        F.WRONG_ANSWER,
        None,
        steps=SEARCH,
        **reason("a.txt differs in line 3"),
        looks_like=F.EMPTY_ANSWER,
    ),
    "says no answer": Labelled(
        F.WRONG_ANSWER,
        "There is no answer.",
        **reason("expected 'no answer'"),
        looks_like=F.EMPTY_ANSWER,
    ),
    # -- tools ----------------------------------------------------------------------------------
    "unknown tool": Labelled(
        F.TOOL_MISUSE,
        "41",
        steps=[calls("serch", {"q": n}, "Error: unknown tool 'serch'") for n in range(2)],
        **WRONG,
    ),
    "malformed arguments": Labelled(
        F.TOOL_MISUSE,
        "41",
        steps=[calls("search", f'{{"q": {n}', "Error: invalid JSON arguments") for n in range(3)],
        **WRONG,
    ),
    "missing argument": Labelled(
        F.TOOL_MISUSE,
        "41",
        steps=[
            calls("search", {"x": n}, "TypeError: missing 1 required positional argument: 'q'")
            for n in range(3)
        ],
        **WRONG,
    ),
    "nobody answers a malformed call": Labelled(
        F.TOOL_MISUSE, "41", steps=[calls("search", f"q={n}", None) for n in range(2)], **WRONG
    ),
    "fails to the end": Labelled(
        F.TOOL_MISUSE,
        "41",
        steps=[
            *SEARCH,
            *[
                calls("run", {"n": n}, f"Traceback (most recent call last):\n {n}")
                for n in range(3)
            ],
        ],
        **WRONG,
    ),
    "one error, then right": Labelled(
        F.WRONG_ANSWER,
        "41",
        steps=[calls("search", {"x": 1}, "Error: missing required argument 'q'"), *SEARCH],
        **WRONG,
        looks_like=F.TOOL_MISUSE,
    ),
    "a page about errors": Labelled(
        F.WRONG_ANSWER,
        "41",
        steps=[
            calls(
                "read", {"p": n}, f"How to handle errors, {n}: an invalid input is refused. " * 60
            )
            for n in range(4)
        ],
        **WRONG,
        looks_like=F.TOOL_MISUSE,
    ),
    "an error rate": Labelled(
        F.WRONG_ANSWER,
        "41",
        steps=[calls("query", {"day": n}, f"error rate of day {n}: 0.1%") for n in range(4)],
        **WRONG,
        looks_like=F.TOOL_MISUSE,
    ),
    "no error in JSON": Labelled(
        F.WRONG_ANSWER,
        "41",
        steps=[calls("query", {"d": n}, f'{{"error": null, "n": {n}}}') for n in range(4)],
        **WRONG,
        looks_like=F.TOOL_MISUSE,
    ),
    "a custom tool's text": Labelled(
        F.WRONG_ANSWER,
        "41",
        steps=[calls("apply_patch", f"*** Begin Patch {n}", "Done") for n in range(3)],
        **WRONG,
        looks_like=F.TOOL_MISUSE,
    ),
    # -- form -----------------------------------------------------------------------------------
    "not JSON": Labelled(
        F.FORMAT, "the answer is 41", **reason("not JSON: expecting value at line 1, column 1")
    ),
    "no number": Labelled(F.FORMAT, "many", **reason("no number in it")),
    "no choice": Labelled(F.FORMAT, "the second", **reason("expected B, found no choice")),
    "no label": Labelled(F.FORMAT, "It is 42.", **reason(r"does not match '^ANSWER: 42$'")),
    "code that does not parse": Labelled(
        F.FORMAT,
        "def f(:",
        details={"verdict": "failed", "reason": "SyntaxError: invalid syntax (line 1)"},
    ),
    "label with a wrong value": Labelled(
        F.WRONG_ANSWER,
        "ANSWER: 41",
        **reason(r"does not match '^ANSWER: 42$'"),
        looks_like=F.FORMAT,
    ),
    "another choice": Labelled(
        F.WRONG_ANSWER, "C", **reason("expected B, found C"), looks_like=F.FORMAT
    ),
    "another number": Labelled(
        F.WRONG_ANSWER, "41", **reason("expected 42, found 41"), looks_like=F.FORMAT
    ),
    "a pattern without a label": Labelled(
        F.WRONG_ANSWER, "41", **reason("does not match '42'"), looks_like=F.FORMAT
    ),
    # -- wrong ----------------------------------------------------------------------------------
    "wrong": Labelled(F.WRONG_ANSWER, "41", **WRONG),
    "wrong after work": Labelled(
        F.WRONG_ANSWER, FORTY_TWO, steps=[*SEARCH, says(FORTY_TWO, "stop")], **WRONG
    ),
    "wrong without a reason": Labelled(F.WRONG_ANSWER, "41"),
    "tests fail": Labelled(
        F.WRONG_ANSWER,
        "def f(): return 1",
        details={"verdict": "failed", "reason": "AssertionError: f(2) == 4"},
    ),
    "an example turn repeats": Labelled(
        F.WRONG_ANSWER,
        "41",
        steps=[*[Step("agent", "I must decline.", {"given": True})] * 6, says("41", "stop")],
        **WRONG,
        looks_like=F.LOOP,
    ),
}
