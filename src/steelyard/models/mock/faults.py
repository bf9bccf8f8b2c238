"""Faults to order: which call is met by which, and the reply that it makes of a good one. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

import orjson

from steelyard.config.errors import BadInput
from steelyard.models.mock.chance import draw
from steelyard.models.mock.reply import Ending, Reply
from steelyard.models.mock.wire import Call, error_body

WHEN: Final = ("rate", "first", "after", "every", "per", "model")
OPTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "status": ("retry_after", "code", "message"),
        "reset": ("at",),
        "hang": ("at",),
        "slow_body": ("seconds",),
        "malformed_json": (),
        "wrong_shape": (),
        "empty_body": (),
        "wrong_usage": ("how",),
        "huge_body": ("mb",),
    }
)
"""Each kind, and the options that only it has. `status` is written as its number."""
WRONG_USAGE: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "missing": None,
        "negative": {"prompt_tokens": -5, "completion_tokens": 3, "input_tokens": -5}
        | {"output_tokens": 3},
        "text": {"prompt_tokens": "many", "completion_tokens": "few", "input_tokens": "many"}
        | {"output_tokens": "few"},
        "huge": {"prompt_tokens": 10**15, "completion_tokens": 1, "input_tokens": 10**15}
        | {"output_tokens": 1},
        "list": [1, 2, 3],
    }
)
PIECES: Final = 10
MEGABYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault, and the calls it meets."""

    kind: str
    status: int = 0
    rate: float | None = None
    """Chance, drawn by seed, prompt and call; None: every call that the rest lets through."""
    first: int | None = None
    """Only the first N calls."""
    after: int = 0
    """Not the first N calls."""
    every: int | None = None
    """Only every N-th call."""
    is_per_prompt: bool = False
    """`first`, `after` and `every` count the calls of each prompt apart."""
    model: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Occasion:
    """Where a call stands among the others."""

    call: int
    """Counted from 0 over all calls."""
    of_prompt: int
    """Counted from 0 over the calls with its messages, failed ones included."""
    digest: str
    model: str


def parse_fault(text: str) -> Fault:
    """Read `KIND` or `KIND:option=value,…`, as in `429:rate=0.1,retry_after=1`.

    Raises:
        BadInput: an unknown kind or option, or a value that is not one.
    """
    kind, _, rest = text.partition(":")
    pairs = dict(_pair(text, part) for part in rest.split(",") if part)
    status = 0
    if kind.isascii() and kind.isdigit():
        status, kind = int(kind), "status"
        if not 300 <= status <= 599:
            raise BadInput(f"--fault {text!r}: {status} is not a failure", remedy="300 to 599")
    if kind not in OPTIONS:
        known = [name for name in OPTIONS if name != "status"]
        near = difflib.get_close_matches(kind, known, n=1)
        raise BadInput(
            f"--fault {text!r}: unknown kind {kind!r}",
            remedy=f"did you mean {near[0]}?" if near else f"a status, or {', '.join(known)}",
        )
    allowed = (*WHEN, *OPTIONS[kind])
    for name in pairs:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1)
            raise BadInput(
                f"--fault {text!r}: unknown option {name!r}",
                remedy=f"did you mean {near[0]}?" if near else f"known: {', '.join(allowed)}",
            )
    try:
        fault = Fault(
            kind,
            status,
            rate=float(pairs["rate"]) if "rate" in pairs else None,
            first=int(pairs["first"]) if "first" in pairs else None,
            after=int(pairs.get("after", 0)),
            every=int(pairs["every"]) if "every" in pairs else None,
            is_per_prompt=_choice(pairs, "per", ("call", "prompt")) == "prompt",
            model=pairs.get("model"),
            options={name: pairs[name] for name in OPTIONS[kind] if name in pairs},
        )
        _check(fault)
    except ValueError as error:
        raise BadInput(f"--fault {text!r}: {error}") from None
    return fault


def _pair(text: str, part: str) -> tuple[str, str]:
    name, equals, value = part.partition("=")
    if not equals:
        raise BadInput(f"--fault {text!r}: {part!r} is not option=value")
    return name, value


def _choice(pairs: Mapping[str, str], name: str, allowed: Sequence[str]) -> str:
    value = pairs.get(name, allowed[0])
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}, not {' or '.join(allowed)}")
    return value


def _check(fault: Fault) -> None:
    if fault.rate is not None and not 0 <= fault.rate <= 1:
        raise ValueError("rate is not between 0 and 1")
    if fault.every is not None and fault.every < 1:
        raise ValueError("every is below 1")
    if (
        float(fault.options.get("seconds", 1)) < 0
        or not 0 < float(fault.options.get("mb", 1)) < 1e4
    ):
        raise ValueError("a size or time is out of range")
    _choice(fault.options, "how", tuple(WRONG_USAGE))
    _choice(fault.options, "at", ("start", "body"))


def fault_for(faults: Sequence[Fault], occasion: Occasion, seed: int) -> Fault | None:
    """Give the first fault that meets this call."""
    for index, fault in enumerate(faults):
        count = occasion.of_prompt if fault.is_per_prompt else occasion.call
        if fault.model is not None and fault.model != occasion.model:
            continue
        if count < fault.after or (fault.first is not None and count >= fault.after + fault.first):
            continue
        if fault.every is not None and (count - fault.after + 1) % fault.every:
            continue
        if fault.rate is not None:
            drawn = draw(seed, "fault", index, occasion.digest, occasion.of_prompt)
            if drawn >= fault.rate:
                continue
        return fault
    return None


def spoil(fault: Fault, call: Call, good: Reply) -> Reply:
    """Make of a good reply the one that the fault sends."""
    return _SPOILERS[fault.kind](fault, call, good)


def _status(fault: Fault, call: Call, good: Reply) -> Reply:
    message = fault.options.get("message", f"the mock was told to answer {fault.status}")
    body = error_body(call.protocol, fault.status, message, code=fault.options.get("code"))
    headers = {}
    if "retry_after" in fault.options:
        headers["retry-after"] = fault.options["retry_after"]
    return Reply(fault.status, orjson.dumps(body), headers=headers, delay_s=good.delay_s)


def _cut(fault: Fault, good: Reply, ending: Ending) -> Reply:
    if fault.options.get("at", "start") == "start":
        return Reply(None, delay_s=good.delay_s, ending=ending)
    return replace(good, chunks=_half(good), ending=ending)


def _half(good: Reply) -> Iterator[tuple[float, bytes]]:
    if good.chunks is None:
        yield 0.0, good.body[: max(1, len(good.body) // 2)]
        return
    chunks = list(good.chunks)
    yield from chunks[: max(1, len(chunks) // 2)]


def _reset(fault: Fault, call: Call, good: Reply) -> Reply:
    return _cut(fault, good, Ending.RESET)


def _hang(fault: Fault, call: Call, good: Reply) -> Reply:
    return _cut(fault, good, Ending.HANG)


def _slow_body(fault: Fault, call: Call, good: Reply) -> Reply:
    whole = good.body if good.chunks is None else b"".join(data for _, data in good.chunks)
    size = max(1, -(-len(whole) // PIECES))
    wait_s = float(fault.options.get("seconds", 2)) / PIECES
    slow = [(wait_s, whole[start : start + size]) for start in range(0, len(whole), size)]
    return replace(good, body=b"", chunks=slow)


def _malformed_json(fault: Fault, call: Call, good: Reply) -> Reply:
    body = b'{"id": "mock", "choices": [{"message": {"content": "cut off'
    if call.is_streaming:
        return replace(good, chunks=[(0.0, b"data: " + body + b"\n\n")])
    return replace(good, body=body)


def _wrong_shape(fault: Fault, call: Call, good: Reply) -> Reply:
    return Reply(200, b'{"choices": 3, "output": "none", "content": null}', delay_s=good.delay_s)


def _empty_body(fault: Fault, call: Call, good: Reply) -> Reply:
    return Reply(200, b"", delay_s=good.delay_s)


def _wrong_usage(fault: Fault, call: Call, good: Reply) -> Reply:
    if good.chunks is not None:  # streams carry it in an answer's own `usage`
        return good
    data = orjson.loads(good.body)
    data["usage"] = WRONG_USAGE[fault.options.get("how", "missing")]
    return replace(good, body=orjson.dumps(data))


def _huge_body(fault: Fault, call: Call, good: Reply) -> Reply:
    size = int(float(fault.options.get("mb", 50)) * MEGABYTE)

    def chunks() -> Iterator[tuple[float, bytes]]:
        yield 0.0, b'{"choices": [{"message": {"content": "'
        for start in range(0, size, MEGABYTE):
            yield 0.0, b"x" * min(MEGABYTE, size - start)
        yield 0.0, b'"}}]}'

    return Reply(200, chunks=chunks(), delay_s=good.delay_s)


_SPOILERS: Final = {
    "status": _status,
    "reset": _reset,
    "hang": _hang,
    "slow_body": _slow_body,
    "malformed_json": _malformed_json,
    "wrong_shape": _wrong_shape,
    "empty_body": _empty_body,
    "wrong_usage": _wrong_usage,
    "huge_body": _huge_body,
}
