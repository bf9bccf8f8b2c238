"""Find what speaks to an agent where only data should be; cheap, so that few texts are judged.

A text passes two filters: words, then phrases. Neither decides anything: what passes is judged by
a model, what does not is never shown to one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from steelyard.components.steps import Step

MAX_TEXT_CHARS: Final = 1024 * 1024
"""Of each result; what follows is not looked at."""
EXCERPT_CHARS: Final = 1500
"""Around what is suspect."""
_MAX_EXCERPTS: Final = 3
"""Of one step."""
_WORDS: Final = (
    "instruction", "ignore ", "disregard", "you must", "you should", "you are now", "assistant",
    "ai agent", "llm", "language model", "system prompt", "do not tell", "don't tell", "[inst]",
    "<|im_start|>", "<system", "override", "please run", "please execute", "please send",
    "new task", "attention", "important:", "agents:", "claude", "chatgpt", "codex",
    "developer mode", "before you continue", "before continuing", "in order to proceed",
    "to proceed,", "run the following", "execute the following", "note to ", "dear ", "anweisung",
    "ignorier", "instrucciones", "ignorez",
)  # fmt: skip
_PHRASES: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:previous|prior|above|"
    r"earlier|all|any|your|"
    r"other|system|original|these|those)\b[^.\n]{0,40}\b(?:instruction|rule|prompt|task|direction|"
    r"guideline|message|context|polic)|"
    r"\b(?:new|updated|additional|hidden|important|special|urgent)\s+(?:system\s+)?(?:instruction|"
    r"directive|task|order)s?\b|"
    r"\b(?:ai|llm|language[ -]model|coding|autonomous)[ -]?(?:agent|assistant|model|"
    r"bot)s?\b[^.\n]{0,60}"
    r"\b(?:must|should|need|have to|please|are required|are to)\b|"
    r"\b(?:if|when|since|as) you are (?:an? )?(?:ai|llm|language model|agent|"
    r"assistant|bot|automated|"
    r"claude|gpt|codex)|"
    r"\b(?:attention|note|message|memo|dear|hello|hey|important|urgent)\b[ ,:]*(?:to |"
    r"for )?(?:the |all |any )?"
    r"(?:ai|llm|agent|assistant|model|claude|chatgpt|gpt|codex|bot)s?\b|"
    r"\byou (?:must|should|need to|have to|are required to|are now|"
    r"will)\b[^.\n]{0,80}\b(?:run|execute|"
    r"send|post|upload|delete|remove|write|create|reply|respond|output|include|print|"
    r"curl|fetch|visit|"
    r"open|install|download|email|forward|reveal|add|change|set|append|insert|commit|"
    r"push|act|behave)|"
    r"\b(?:please|now|instead,?|first,?|also,?|next,?) (?:run|execute|send|post|"
    r"upload|delete|fetch|curl|"
    r"forward|reveal|email|append)\b[^.\n]{0,120}|"
    r"\bbefore (?:you )?(?:continu|proceed|answer|submit|finish)\w*,? (?:please |you must |first )?"
    r"(?:run|execute|send|create|write|read|fetch|visit|add|delete)|"
    r"\b(?:run|execute) the following (?:command|code|script|step)|"
    r"\b(?:do not|don't|never) (?:tell|inform|mention|reveal|show|notify|"
    r"alert)\b[^.\n]{0,40}\b(?:user|anyone|"
    r"human|developer|operator)|"
    r"\bsystem prompt\b|<\|im_start\|>|\[/?INST\]|</?(?:system|assistant|instructions?)>|"
    r"\b(?:system|assistant|developer) ?(?:message|override|note|notice)?:\s|"
    r"\bignorier\w*\b[^.\n]{0,60}\banweisung|\bignor\w+\b[^.\n]{0,60}\binstruc",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A piece of untrusted text that reads like an instruction."""

    step: int
    excerpt: str


def suspects_in(step: Step, number: int, *, is_output: bool = False) -> list[Suspect]:
    """Give what is suspect in the results of a step.

    Args:
        step: the step.
        number: its place.
        is_output: whether its message is what commands gave back, as of agents that write their
            commands in fences.
    """
    texts = [one.content for one in step.results]
    if is_output:
        texts.append(step.message)
    found: list[Suspect] = []
    for text in texts:
        shown = text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS]
        plain = shown.lower()
        if not any(word in plain for word in _WORDS):
            continue
        end = 0
        for match in _PHRASES.finditer(shown):
            if match.start() < end:
                continue  # it stands in the excerpt before
            begin = max(0, match.start() - EXCERPT_CHARS // 3)
            end = min(len(shown), begin + EXCERPT_CHARS)
            found.append(Suspect(number, shown[begin:end]))
            if len(found) >= _MAX_EXCERPTS:
                return found
    return found
