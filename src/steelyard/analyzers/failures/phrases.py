"""The texts by which rules know refusals, tool errors, full contexts and wrong forms. Pure.

Conservative on purpose: what is in doubt is a wrong answer. Each list is tried on the beginning
of a text only, with patterns that take time in proportion to it.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from steelyard.config import printable

QUOTE_CHARS: Final = 160
REFUSAL_CHARS: Final = 1_500
"""A longer answer is no refusal, whatever it begins with."""
_LOOKED_AT: Final = 300
_HELP: Final = (
    r"(?:help|assist|comply|provide|fulfil|fulfill|answer|create|generate|support|engage|share|"
    r"do that|do this|continue with)"
)
_REFUSALS: Final = (
    # English
    rf"(?:i'm |i am )?(?:very |really )?(?:sorry|apologi[sz]e)[,.]? (?:but )?(?:i |we )"
    rf"(?:can't|cannot|can not|won't|will not|am unable to|am not able to|'m unable to) {_HELP}",
    rf"(?:as an ai[a-z ]{{0,30}},? )?i (?:can't|cannot|can not|won't|will not) {_HELP}\b"
    r"(?: you)?(?: with| to| by| in| on| instructions| content| information|[.,;!]|$)",
    rf"(?:as an ai[a-z ]{{0,30}},? )?(?:i'm|i am) (?:unable|not able) to {_HELP}\b"
    r"(?: you)?(?: with| to| instructions| content|[.,;!]|$)",
    r"i (?:must|have to) (?:respectfully )?decline",
    r"i'm not (?:comfortable|going to) (?:help|assist|provid|do that)",
    # German, French, Spanish, Portuguese, Italian, Russian
    r"(?:es )?tut mir leid, (?:aber )?(?:ich kann|dabei kann ich)[^.]{0,60}nicht",
    r"(?:dabei|damit) kann ich (?:dir |ihnen |leider )*nicht (?:weiter)?helfen",
    r"(?:je suis )?désolée?, (?:mais )?je ne (?:peux|suis)",
    r"je ne peux pas (?:vous |t')?(?:aider|fournir|répondre)",
    r"lo siento,? (?:pero )?no puedo",
    r"no puedo (?:ayudar|proporcionar|cumplir)",
    r"(?:desculpe|sinto muito),? (?:mas )?não posso",
    r"mi dispiace,? (?:ma )?non posso",
    r"(?:извините|простите|к сожалению),? (?:но )?я не могу",
)
_REFUSALS_WITHOUT_SPACES: Final = (
    r"(?:很?抱歉|对不起|對不起)[，,。 ]{0,2}(?:但)?我?(?:无法|無法|不能)",
    r"我(?:无法|無法|不能)(?:协助|協助|帮助|幫助|提供|满足)",
    r"申し訳(?:ありません|ございません)が[^。]{0,40}(?:できません|お答え)",
    r"죄송(?:합니다|하지만)[^.]{0,40}(?:수 없|도와드릴)",
)
# At the beginning of a sentence: not `he said "I can't help you"`.
_REFUSAL: Final = re.compile(
    rf"(?:^|[.!?\n]\s{{0,3}})(?:{'|'.join((*_REFUSALS, *_REFUSALS_WITHOUT_SPACES))})"
)
_APOSTROPHES: Final = str.maketrans({"\u2019": "'", "\u02bc": "'", "`": "'"})

_CONTEXT: Final = re.compile(
    r"context[ _-]?(?:length|window|limit|size)|maximum context|prompt is too long|"
    r"too many (?:input |prompt )?tokens|input is too long|exceeds? the (?:model's )?(?:maximum )?"
    r"(?:number of )?tokens",
    re.IGNORECASE,
)
_SHORT: Final = 400
_ERROR_WORDS: Final = ("error", "exception", "traceback")
_ARGUMENT_WORDS: Final = (
    "argument",
    "parameter",
    "input",
    "json",
    "propert",
    "field",
    "validation",
)
# Of texts in lower case:
_UNKNOWN_TOOL: Final = re.compile(
    r"(?:unknown|no such|unrecogni[sz]ed|invalid|undefined) (?:tool|function)\b|"
    r"\b(?:tool|function) ['\"`]?[\w.:/-]{1,80}['\"`]? (?:was )?(?:not found|does not exist|"
    r"doesn't exist|is not (?:available|defined|registered|known|a valid))",
)
_BAD_ARGUMENTS: Final = re.compile(
    r"(?:invalid|malformed|bad|wrong) (?:json |tool |function )?(?:arguments?|parameters?|input)\b|"
    r"(?:could not|cannot|can't|failed to|unable to) (?:parse|decode) (?:the )?(?:tool |function )?"
    r"(?:call )?(?:arguments?|parameters?|input|json)|"
    r"missing (?:\d+ )?(?:required )?(?:positional )?(?:arguments?|parameters?|propert(?:y|ies)|"
    r"fields?)\b|unexpected keyword argument|\d+ validation errors? for|"
    r"(?:arguments?|parameters?) (?:is|are) (?:required|not valid)",
)
_ERROR: Final = re.compile(
    r"^\W{0,3}(?:tool |fatal |runtime )?(?:error|exception)\s*(?:[:\]!]|$)|"
    r"^\W{0,3}[a-z]\w{2,40}(?:error|exception)\b|^\W{0,3}traceback \(most recent call last\)|"
    r'^\s*\{\s*"(?:error|is_?error)"\s*:\s*+(?!null|false|""|\[\]|\{\})|"is_?error"\s*:\s*true',
)
_WRONG_FORM: Final = re.compile(
    r"^not JSON\b|\bis not JSON\b|^no JSON\b|^no number in it|, found no choice$|"
    r"too long to be read as JSON|\bno code block\b|(?:^|\W)(?:Syntax|Indentation|Tab)Error\b"
)
_NOTHING_THERE: Final = re.compile(r"^no (?:answer|trajectory|file\b.{0,200}|such file\b.*)$")
_LABEL: Final = re.compile(
    r"^does not (?:match|contain) .{0,60}?(?<![A-Za-z])([A-Z][A-Za-z]{1,15}(?: [A-Za-z]{1,15})?:)"
)
LENGTH_STOPS: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "incomplete", "model_length"}
)
"""Stop reasons that say that the output was cut off."""
REFUSAL_STOPS: Final = frozenset({"content_filter", "refusal", "safety", "blocked"})
"""Stop reasons that say that the model or its provider declined."""


def refusal_in(text: str) -> str | None:
    """Give the words with which a text declines its task; None where it does not."""
    text = text.strip()
    if not text or len(text) > REFUSAL_CHARS:
        return None
    plain = text[:_LOOKED_AT].translate(_APOSTROPHES).lower()
    found = _REFUSAL.search(plain)
    return None if found is None else quote(text[found.start() :].lstrip(".!? \n"))


def speaks_of_context(message: str) -> bool:
    """True where an endpoint's message says that the context is full."""
    return _CONTEXT.search(message[:2000]) is not None


class ToolFault(Enum):
    """What a tool's result says of its call, where it says that it failed."""

    UNKNOWN_TOOL = "unknown tool"
    BAD_ARGUMENTS = "bad arguments"
    OTHER = "other"


def tool_fault_in(result: str) -> ToolFault | None:
    """Tell from a tool's result how its call failed; None where nothing says that it did.

    A page of documentation may speak of errors, too: only a short text, or one that begins as
    errors do, counts.
    """
    head = result[:_LOOKED_AT].lower()
    # Most results hold none of these words, and to look for words is what takes the least time.
    begins = any(word in head for word in _ERROR_WORDS) and _ERROR.search(head) is not None
    if begins or len(result) < _SHORT:
        if ("tool" in head or "function" in head) and _UNKNOWN_TOOL.search(head):
            return ToolFault.UNKNOWN_TOOL
        if any(word in head for word in _ARGUMENT_WORDS) and _BAD_ARGUMENTS.search(head):
            return ToolFault.BAD_ARGUMENTS
    return ToolFault.OTHER if begins else None


def is_wrong_form(reason: str, answer: str) -> bool:
    """True where a scorer's reason says that an answer is not of the form that it reads.

    A pattern with a label, as `ANSWER:`, counts where the answer has no such label.
    """
    if _WRONG_FORM.search(reason[:400]):
        return True
    label = _LABEL.search(reason[:400])
    return label is not None and label[1].lower() not in answer.lower()


def says_nothing_is_there(reason: str) -> bool:
    """True where a scorer's reason says that there was nothing to look at."""
    return _NOTHING_THERE.match(reason[:400]) is not None


def repeated_end(text: str, *, chars: int = 600, longest: int = 120) -> str | None:
    """Give what a text repeats at its end, over and over for `chars` characters; else None."""
    tail = text.rstrip()[-chars:]
    if len(tail) < chars:
        return None
    for length in range(1, longest + 1):
        # Equal to itself moved by `length`: periodic with that period.
        if tail[length:] == tail[:-length]:
            unit = tail[-length:]
            return unit if any(char.isalnum() for char in unit) else None
    return None


def quote(text: str, chars: int = QUOTE_CHARS) -> str:
    """Copy a text's beginning for people: one line, nothing that moves a cursor."""
    cut = text[: chars * 2].strip()
    line = " ".join(printable.one_line(" ".join(cut.split())).split())
    is_whole = len(line) <= chars and len(cut) == len(text.strip())
    return line if is_whole else line[: chars - 1].rstrip() + "…"
