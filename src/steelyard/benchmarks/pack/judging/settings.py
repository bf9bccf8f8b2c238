"""Which model judges, and where it is reached: the pack's `judge` under the request's.

A pack is content and may be hostile. So it carries no key, its address counts only where it is
this machine's own loopback, and no key is ever sent to an address that a pack has chosen.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
)

from steelyard.benchmarks.pack.judging.prompt import PROMPT_VERSION
from steelyard.config.errors import BadInput, Problem
from steelyard.config.schema.request import NonNegativeNumber, Protocol
from steelyard.config.secret_names import shown_url

Text = Annotated[str, StringConstraints(min_length=1)]

Samples = Literal[1, 3, 5, 7, 9, 11, 13, 15]
"""Odd, so that there is always a majority."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class JudgeModelSpec(_Strict):
    """The judging model, as a pack may name it."""

    id: Text | None = None
    """What is sent to the endpoint."""
    base_url: Text | None = None
    """Used by itself only where it is a loopback address; a request confirms any other."""
    api_protocol: Protocol | None = None
    """`openai-chat` by default."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Forwarded as they are."""


class JudgeSpec(_Strict):
    """`judge` of a pack: what all its validators of type judge share."""

    model: JudgeModelSpec = JudgeModelSpec()
    samples: Samples | None = None
    """How often each of them asks; 1 by default."""


class JudgeModelParams(JudgeModelSpec):
    """The judging model, as a request names it: over the pack's, with what a pack may not hold."""

    api_key: str | None = Field(default=None, repr=False)
    extra_headers: dict[str, str] = Field(default_factory=dict, repr=False)
    max_request_retries: Annotated[int, Field(ge=0)] | None = None
    max_connections: PositiveInt | None = None
    rpm: PositiveFloat | None = None
    tpm: PositiveFloat | None = None
    request_timeout_seconds: NonNegativeNumber | None = None
    max_response_bytes: PositiveInt | None = None


class JudgeParams(_Strict):
    """`benchmark.judge` of a request."""

    model: JudgeModelParams = JudgeModelParams()
    samples: Samples | None = None


@dataclass(frozen=True, slots=True)
class Judge:
    """The judge of a request's pack."""

    model: Mapping[str, Any]
    """`ModelSettings` as JSON."""
    samples: int


def judge_of(pack: JudgeSpec | None, request: JudgeParams | None) -> Judge:
    """Lay the request's judge over the pack's.

    Raises:
        BadInput: no model or endpoint is named, or the endpoint is one that a pack may not
            choose; all problems at once.
    """
    spec, params = (pack or JudgeSpec()).model, (request or JudgeParams()).model
    model = _laid_over(spec.model_dump(exclude_none=True), params.model_dump(exclude_none=True))
    problems = []
    if "id" not in model:
        problems.append(
            Problem(
                "no model is named to judge",
                remedy="write `judge: {model: {id: …}}` under the request's benchmark; with "
                "`steelyard run`, -P benchmark.judge.model.id=…",
            )
        )
    fault = _endpoint_problem(spec, params)
    if fault is not None:
        problems.append(fault)
    if problems:
        raise BadInput.of(problems)
    samples = (request.samples if request else None) or (pack.samples if pack else None) or 1
    return Judge(model, samples)


def judge_identity(pack: JudgeSpec | None, request: Mapping[str, Any] | None) -> dict[str, Any]:
    """Give what of the judge can change a score: not where it is reached, nor with which key.

    Args:
        pack: the pack's `judge`.
        request: the request's `benchmark.judge` as plain data, secrets still references.
    """
    spec, above = pack or JudgeSpec(), request or {}
    model = _laid_over(spec.model.model_dump(exclude_none=True), above.get("model") or {})
    return {
        "model": {
            "id": model.get("id"),
            "api_protocol": model.get("api_protocol") or "openai-chat",
            "params": model.get("params") or {},
        },
        "samples": above.get("samples") or spec.samples or 1,
        "prompt": PROMPT_VERSION,
    }


def is_own_loopback(url: str) -> bool:
    """True for an HTTP address of this machine's loopback without user, query or fragment."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or "@" in parts.netloc:
        return False
    if "?" in url or "#" in url:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _endpoint_problem(spec: JudgeModelSpec, params: JudgeModelParams) -> Problem | None:
    if params.base_url is not None:
        return None
    has_key = params.api_key is not None or bool(params.extra_headers)
    confirm = (
        "write it as `judge: {model: {base_url: …}}` under the request's benchmark (with "
        "`steelyard run`, -P benchmark.judge.model.base_url=…), if it is"
    )
    if spec.base_url is None:
        if has_key:
            return None  # the protocol's own address, chosen by whoever wrote its key
        return Problem(
            "nobody says where the judge is reached",
            remedy="write `judge: {model: {base_url: …, api_key: ${NAME}}}` under the request's "
            "benchmark; with `steelyard run`, -P benchmark.judge.model.base_url=… and "
            "-P 'benchmark.judge.model.api_key=${NAME}'",
        )
    shown = shown_url(spec.base_url)
    if has_key:
        message = f"the judge's key would go to {shown}, which the pack has chosen"
        return Problem(message, remedy=f"{confirm} the right place for your key")
    if not is_own_loopback(spec.base_url):
        message = f"the pack sends its judge's questions to {shown}, which no request confirms"
        return Problem(message, remedy=f"{confirm} where you want them to go")
    return None


def _laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge mappings; other values, lists too, replace. What is None says nothing."""
    merged = dict(below)
    for name, value in above.items():
        known = merged.get(name)
        if isinstance(value, Mapping) and isinstance(known, Mapping) and "$secret" not in value:
            merged[name] = _laid_over(known, value)
        elif value is not None or name not in JudgeModelParams.model_fields:
            merged[name] = value
    return merged
