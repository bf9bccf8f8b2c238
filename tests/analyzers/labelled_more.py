"""The second half of the labelled attempts."""

from __future__ import annotations

from steelyard.analyzers.failures.classes import FailureClass as F
from steelyard.components.issues import Issue, IssueCode, Phase
from steelyard.components.steps import Step
from tests.analyzers.labelling import (
    FORTY_TWO,
    SEARCH,
    TABLE,
    WRONG,
    Labelled,
    calls,
    reason,
    says,
)

MORE: dict[str, Labelled] = {
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
