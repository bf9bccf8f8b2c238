"""What decides whether saved work still answers the question that is asked now.

The *generation* identity covers all that can change what an agent does, the *evaluation* identity
all that can change its score. `FIELD_IDENTITY` says for every field of an orchestration which of
them it belongs to; a test walks the schemas and compares.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import orjson

from steelyard.config.schema.request import AttemptsSettings, Request
from steelyard.config.secrets import MARKER, SecretRef, sealed_json

IDENTITY_HEX_DIGITS: Final = 32
_GENERATION: Final = "generation/1"
_EVALUATION: Final = "evaluation/1"

ENVIRONMENT_PARAMS: Final = frozenset({"image", "network"})
"""What of an environment an agent can see; its other parameters are limits and access."""


class Belongs(StrEnum):
    """Which identity a field is part of."""

    GENERATION = "generation"
    EVALUATION = "evaluation"
    NEITHER = "neither"


_G, _E, _N = Belongs.GENERATION, Belongs.EVALUATION, Belongs.NEITHER

FIELD_IDENTITY: Final[Mapping[str, Belongs]] = MappingProxyType(
    {
        "version": _N,
        "name": _N,
        "task_concurrency": _N,
        "runtime.provider_limits": _N,
        "runtime.env_open_qps": _N,
        "runtime.max_concurrent_requests": _N,
        "runtime.results_dir": _N,
        "runtime.data_dir": _N,
        "runtime.timeout_seconds": _N,
        "runtime.cleanup_grace_seconds": _N,
        "runtime.progress": _N,
        "runtime.log_level": _N,
        "runtime.file_log_level": _N,
        "runtime.log_format": _N,
        "runtime.file_log_format": _N,
        "runtime.allow_unpriced": _N,
        "runtime.auto_install_dependencies": _N,
        "runtime.secret_env": _N,
        "budget.usd": _N,
        "budget.tokens": _N,
        "budget.attempt_usd": _N,  # where it ended an attempt: see reuse.py
        "budget.attempt_tokens": _N,
        "budget.reserve_usd": _N,
        "prices": _N,
        "requests.name": _N,
        "requests.benchmark.id": _E,
        "requests.benchmark.*": _E,  # what they change of the tasks is in the tasks' content
        "requests.harness.id": _G,
        "requests.harness.*": _G,
        "requests.environment.id": _G,  # what `auto` resolved to
        "requests.environment.image": _G,
        "requests.environment.network": _G,
        "requests.environment.*": _N,
        "requests.model.id": _G,
        "requests.model.base_url": _N,
        "requests.model.api_key": _N,
        # The protocols of one endpoint put different prompts and defaults before a model.
        "requests.model.api_protocol": _G,
        "requests.model.params": _G,
        "requests.model.extra_headers": _N,
        "requests.model.max_request_retries": _N,
        "requests.model.max_connections": _N,
        "requests.model.rpm": _N,
        "requests.model.tpm": _N,
        "requests.model.request_timeout_seconds": _N,
        "requests.model.max_response_bytes": _N,
        "requests.model.provider_tools": _G,
        "requests.execution.attempts.k": _N,  # of the plan, which must be the same anyway
        "requests.execution.attempts.strategy": _N,  # the same; it also is early_stop's default
        "requests.execution.attempts.early_stop": _G,
        "requests.execution.seed": _G,
        "requests.execution.max_concurrent_attempts": _N,
        "requests.execution.max_retries": _N,
        "requests.execution.retry_pattern_list": _N,
        "requests.execution.run_timeout_seconds": _N,  # where it fired: see reuse.py
        "requests.execution.evaluation_timeout_seconds": _N,
        "requests.execution.setup_timeout_seconds": _N,
        "requests.execution.collection_timeout_seconds": _N,
        "requests.execution.timeout_multiplier": _N,
        "requests.execution.keep_environment": _N,
        "requests.execution.analysis": _N,
        "requests.execution.recipes": _G,  # they change the plan
        "requests.execution.save_artifacts": _N,
        "requests.execution.limit": _N,
        "requests.execution.sample_ids": _N,
        "requests.execution.exclude_ids": _N,
        "requests.execution.shard": _N,
        "requests.runtime.reuse": _N,
        "requests.runtime.reuse_run_id": _N,
        "requests.runtime.checkpoint_resume": _N,
        "requests.output.run_name": _N,
        "requests.output.run_id": _N,
        "requests.budget.usd": _N,
        "requests.budget.tokens": _N,
        "requests.budget.attempt_usd": _N,
        "requests.budget.attempt_tokens": _N,
        "requests.budget.reserve_usd": _N,
    }
)
"""Dotted paths without list indices; `*` stands for the free parameters of a component."""


def resolved_early_stop(attempts: AttemptsSettings) -> bool:
    """Say whether a task stops at its first success; by default `pass` does."""
    if attempts.early_stop is not None:
        return attempts.early_stop
    return attempts.strategy == "pass"


def generation_parts(
    request: Request,
    *,
    harness_version: str,
    environment_id: str | None = None,
    harness_params: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Give what of a request is in its generation identity, for the hash and for people.

    Args:
        request: the resolved request.
        harness_version: the harness's own version.
        environment_id: what `auto` resolved to; the request's own by default.
        harness_params: with the harness's defaults filled in; as written by default.
    """
    model, environment = request.model, request.environment
    image_parts = {k: v for k, v in environment.params.items() if k in ENVIRONMENT_PARAMS}
    return {
        "schema": _GENERATION,
        "harness": {
            "id": request.harness.id,
            "version": harness_version,
            "params": _settled(
                request.harness.params if harness_params is None else harness_params
            ),
        },
        "model": {
            "id": model.id,
            "protocol": model.api_protocol,
            "params": _settled(model.params),
            **({"provider_tools": True} if model.provider_tools else {}),
        },
        "environment": {
            "id": environment_id or environment.id,
            **_settled({"image": None, "network": None, **image_parts}),
        },
        "early_stop": resolved_early_stop(request.execution.attempts),
        "recipes": list(request.execution.recipes),
        # Without one, what it was before there were any: work of old runs stays good.
        **({} if request.execution.seed is None else {"seed": request.execution.seed}),
    }


def evaluation_parts(
    request: Request,
    *,
    benchmark_id: str,
    benchmark_version: str,
    benchmark_params: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Give what of a request is in its evaluation identity.

    Args:
        request: the resolved request.
        benchmark_id: the benchmark's own id (a pack's slug, never its path).
        benchmark_version: as its `info()` says.
        benchmark_params: with defaults filled in; as written by default.
    """
    params = request.benchmark.params if benchmark_params is None else benchmark_params
    return {
        "schema": _EVALUATION,
        "benchmark": {
            "id": benchmark_id,
            "version": benchmark_version,
            "params": _settled(params),
        },
    }


def base_of(parts: Mapping[str, Any]) -> bytes:
    """Digest the parts that all tasks of a request share; once a request."""
    return hashlib.sha256(canonical_json(parts)).digest()


def generation_identity(base: bytes, task_content: Any) -> str:
    """Give the generation identity of a task: 32 hex digits.

    Args:
        base: `base_of(generation_parts(...))`.
        task_content: what `Benchmark.generation_content` gives.
    """
    return _identity(base, task_content)


def evaluation_identity(base: bytes, task_content: Any) -> str:
    """Give the evaluation identity of a task: 32 hex digits.

    Args:
        base: `base_of(evaluation_parts(...))`.
        task_content: what `Benchmark.evaluation_content` gives.
    """
    return _identity(base, task_content)


def content_digest(task_content: Any) -> str:
    """Give a digest of a task alone, whoever is asked: 32 hex digits.

    Args:
        task_content: what `Benchmark.generation_content` gives.
    """
    return _identity(b"", task_content)


def canonical_json(value: Any) -> bytes:
    """Write JSON so that equal data give equal bytes: keys sorted, nothing between them.

    Where orjson refuses (integers over 64 bits, lone surrogates) the standard library writes, with
    everything but ASCII escaped.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def identity_differences(was: Any, now: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Give each field in which two identities' parts differ: `{field, was, is}`."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in sorted({*was, *now}):
            inner = f"{path}.{key}" if path else str(key)
            yield from identity_differences(was.get(key), now.get(key), inner)
    elif was != now:
        yield {"field": path, "was": was, "is": now}


def _identity(base: bytes, content: Any) -> str:
    return hashlib.sha256(base + canonical_json(content)).hexdigest()[:IDENTITY_HEX_DIGITS]


def _settled(tree: Any) -> Any:
    """Copy parameters so that only what they mean is left.

    A secret counts as there or not there, whatever its name and value. 1 and 1.0 are one number,
    as in RFC 8785.
    """
    if isinstance(tree, SecretRef):
        return {MARKER: True}
    if isinstance(tree, Mapping):
        if set(tree) == {MARKER}:
            return {MARKER: True}
        return {str(key): _settled(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_settled(item) for item in tree]
    if isinstance(tree, float) and tree.is_integer() and abs(tree) < 2**53:
        return int(tree)
    return sealed_json(tree)
