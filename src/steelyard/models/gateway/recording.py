"""Requests and Readings → steps: what is new in a conversation, tool calls, usage. Pure.

An agent's step is given at once, with its usage, so that it is on disk while the attempt runs.
What its tools gave back is only known from the next request: it becomes a `system` step that holds
nothing but `results`. `with_observations` moves them to the step whose calls they answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from steelyard.components.steps import Step
from steelyard.components.values import Usage
from steelyard.models.gateway.turns import (
    Item,
    conversation,
    is_assistants,
    key_of,
    mapped,
    steps_of,
)
from steelyard.models.protocols.form import Reading

MAX_PREFIXES: Final = 8192
"""Beginnings of conversations that are remembered, over all conversations of an attempt."""
MAX_STEPS_A_CALL: Final = 1000
MAX_RECORDED_BYTES: Final = 64 * 1024 * 1024
"""Of one attempt; afterwards nothing is left but its calls, with their usage and no texts."""
STEP_BYTES: Final = 1024
"""What a step takes of that, its texts apart: a million empty messages are no smaller for it."""
SLACK: Final = 4096
"""Texts are cut this much later before they are redacted: of half a secret nobody knows it."""


class Conversations:
    """Tells what a request adds to the conversations that came before it.

    A conversation is known by its beginning: the longest run of first turns that some earlier
    request had, too. So sub-agents that take turns do not disturb each other.
    """

    def __init__(self, max_prefixes: int = MAX_PREFIXES) -> None:
        self._max = max_prefixes
        self._answered: OrderedDict[int, bool] = OrderedDict()
        """By prefix: whether an answer to just this conversation was recorded."""

    def news(self, items: Sequence[Item], thread: str) -> tuple[Sequence[Item], int]:
        """Give the items that are new, and the key of the conversation as it now stands."""
        key = hash(thread)
        keys = [key]
        for item in items:
            key = hash((key, key_of(item)))
            keys.append(key)
        known = len(items)
        while known and keys[known] not in self._answered:
            known -= 1
        start = known
        if self._answered.get(keys[known], False):
            # What follows is the answer that we gave, however the agent has written it down.
            while start < len(items) and is_assistants(items[start]):
                start += 1
        for one in keys[1:]:
            self._remember(one, self._answered.get(one, False))
        return items[start:], keys[-1]

    def answered(self, key: int) -> None:
        """Note that the conversation of this key has an answer on record."""
        self._remember(key, True)

    def _remember(self, key: int, has_answer: bool) -> None:
        self._answered[key] = has_answer
        self._answered.move_to_end(key)
        if len(self._answered) > self._max:
            self._answered.popitem(last=False)


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a model call ended, for its step."""

    protocol: str
    reading: Reading | None
    usage: Usage | None
    duration_s: float
    """Waits and retries included."""
    retries: int = 0
    fault: str | None = None
    """The issue code of what went wrong."""
    fault_message: str | None = None
    is_stream: bool = False


class Recorder:
    """Makes the steps of one attempt.

    Args:
        model_id: the request's own model; another that answers is named.
        redact: hides secrets.
        max_text_bytes: of one text; the rest is cut.
    """

    def __init__(
        self, model_id: str, redact: Callable[[bytes], bytes], max_text_bytes: int
    ) -> None:
        self._model_id = model_id
        self._redact = redact
        self._max_bytes = max_text_bytes
        self._left_bytes = MAX_RECORDED_BYTES
        self._conversations = Conversations()
        self._systems: OrderedDict[int, None] = OrderedDict()
        self._results: OrderedDict[str, None] = OrderedDict()

    def asked(self, protocol: str, data: Any) -> tuple[list[Step], int]:
        """Give the steps that a request adds, and the key of its conversation."""
        try:
            return self._asked(protocol, data)
        except RecursionError:
            # Whoever nests so deeply may do so; what the endpoint says to it is on record.
            return [Step("system", "[nested too deeply to be recorded]")], 0

    def _asked(self, protocol: str, data: Any) -> tuple[list[Step], int]:
        found = conversation(protocol, data)
        steps = []
        if found.system and not _seen(self._systems, hash(found.system)):
            steps.append(Step("system", found.system))
        items, key = self._conversations.news(found.items, found.thread)
        new = [step for step in map(self._unseen, steps_of(items)) if step is not None]
        left_out = len(new) - MAX_STEPS_A_CALL
        if left_out > 0:
            new = new[:MAX_STEPS_A_CALL]
            new.append(Step("system", f"[{left_out} more messages are not recorded]"))
        return [self._bounded(step) for step in (*steps, *new) if self._has_room()], key

    def answered(self, key: int, end: CallEnd) -> Step:
        """Give the step of a call that has ended."""
        reading = end.reading
        extra: dict[str, Any] = {
            "protocol": end.protocol,
            "duration_s": round(end.duration_s, 4),
        }
        if end.is_stream:
            extra["stream"] = True
        if end.retries:
            extra["retries"] = end.retries
        if end.fault is not None:
            extra["fault"] = end.fault
            extra["fault_message"] = self._words(end.fault_message or "")
        if reading is None:
            return self._bounded(Step("agent", "", extra, usage=end.usage))
        if reading.text or reading.tool_calls or end.fault is None:
            self._conversations.answered(key)
        if reading.stop_reason is not None:
            extra["stop_reason"] = self._words(reading.stop_reason)
        return self._bounded(
            Step(
                "agent",
                reading.text,
                extra,
                reading.tool_calls,
                reasoning=reading.reasoning,
                model=None if reading.model == self._model_id else reading.model,
                usage=end.usage,
            )
        )

    def _unseen(self, step: Step) -> Step | None:
        """Leave out results that are on record already, as after a conversation was shortened."""
        if not step.results:
            return step
        fresh = tuple(
            result
            for result in step.results
            if result.call_id is None or not _seen(self._results, result.call_id)
        )
        return replace(step, results=fresh) if fresh else None

    def _has_room(self) -> bool:
        """Take the room of one more step; False where none is left."""
        self._left_bytes -= STEP_BYTES
        return self._left_bytes > 0

    def _bounded(self, step: Step) -> Step:
        return mapped(step, self._text)

    def _words(self, text: str) -> str:
        """Redact a short text of the endpoint's."""
        raw = text[:SLACK].encode("utf-8", "replace")
        return self._redact(raw).decode("utf-8", "replace")

    def _text(self, text: str) -> str:
        """Redact a text, and cut it where it is longer than it may be."""
        if not text:
            return text
        limit = max(0, min(self._max_bytes, self._left_bytes))
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        if size <= limit:
            raw = text.encode("utf-8", "replace")
            covered = self._redact(raw)
            self._left_bytes -= len(covered)
            return text if covered is raw else covered.decode("utf-8", "replace")
        raw = text[: limit + SLACK].encode("utf-8", "replace")[: limit + SLACK]
        # Nothing of the slack is kept: a secret that begins there is cut in two.
        covered = self._redact(raw)[: max(0, min(limit, len(raw) - SLACK))]
        self._left_bytes -= len(covered)
        kept = covered.decode("utf-8", "ignore")
        return f"{kept}[… cut: {size} bytes in all]"


def _seen(known: OrderedDict[Any, None], key: Any) -> bool:
    """Tell whether a key is known; it is from now on, and the oldest is forgotten."""
    if key in known:
        known.move_to_end(key)
        return True
    known[key] = None
    if len(known) > MAX_PREFIXES:
        known.popitem(last=False)
    return False


def with_observations(steps: Iterable[Step]) -> list[Step]:
    """Move tool results to the steps whose calls they answer, as ATIF keeps them.

    Results that answer no known call stay where they are.
    """
    made: list[Step] = []
    callers: dict[str, int] = {}
    for step in steps:
        if step.source == "system" and step.results and not step.message:
            left = []
            for result in step.results:
                at = callers.get(result.call_id) if result.call_id is not None else None
                if at is None:
                    left.append(result)
                else:
                    made[at] = replace(made[at], results=(*made[at].results, result))
            if not left:
                continue
            step = replace(step, results=tuple(left))
        for call in step.tool_calls:
            if call.id:
                callers[call.id] = len(made)
        made.append(step)
    return made
