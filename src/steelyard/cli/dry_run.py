"""The end of `run` and `launch`: print what was resolved, or run it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from steelyard.cli.asked import NOTHING, Asked
from steelyard.cli.output import (
    counted,
    pairs_lines,
    print_json,
    print_warnings,
    say,
    warnings_json,
)
from steelyard.cli.streams import redact_with
from steelyard.config.errors import Problem
from steelyard.config.redaction import REDACTED, Redactor, redact_tree, shown_ref
from steelyard.config.resolve import InvalidSettings, Resolution
from steelyard.config.schema.request import ModelSettings, Request
from steelyard.config.secret_names import shown_url
from steelyard.config.secrets import SecretRef, SecretStore

if TYPE_CHECKING:
    from steelyard.engine.plan import Plan
    from steelyard.engine.request_plan import RequestPlan


def resolved(resolve: Callable[[], Resolution]) -> Resolution:
    """Resolve settings; where they are wrong, say in the same error what a plan finds wrong.

    Raises:
        InvalidSettings: all that is wrong, at once.
    """
    try:
        return resolve()
    except InvalidSettings as error:
        from steelyard.engine.every_problem import with_plan_problems

        raise with_plan_problems(error) from error


def finish(resolution: Resolution, *, dry_run: bool, as_json: bool, asked: Asked = NOTHING) -> int:
    """Print what was resolved, or run it; return the exit status.

    Raises:
        BadInput: what the settings alone could not show, such as a component's own fields.
    """
    redactor = Redactor(resolution.secrets, secret_env=resolution.orchestration.runtime.secret_env)
    redact_with(redactor.text)
    resolution, asked = asked.expanded(resolution)
    if not dry_run:
        from steelyard.cli.execute import execute

        return execute(resolution, as_json=as_json, asked=asked)
    from steelyard.components.clock import SystemClock
    from steelyard.engine.plan import make_plan

    plan = make_plan(resolution, clock=SystemClock())
    asked.gates(plan)
    warnings = [*plan.warnings, *plan.lacking]
    if as_json:
        print_json(redactor.tree(dry_run_json(resolution, plan, warnings)))
    else:
        for line in dry_run_lines(resolution, plan):
            say(redactor.text(line))
        print_warnings([_redacted(problem, redactor) for problem in warnings])
    return 0


def _redacted(problem: Problem, redactor: Redactor) -> Problem:
    remedy = redactor.text(problem.remedy) if problem.remedy else None
    return Problem(redactor.text(problem.message), problem.where, remedy)


def endpoint_host(model: ModelSettings, secrets: SecretStore) -> str | None:
    """Give the host (and port) that a model is reached at; None where no model is called."""
    url = model.base_url
    if url is None:
        if model.id == "none":
            return None
        from steelyard.models.protocols import PROTOCOLS

        url = PROTOCOLS[model.api_protocol].default_base_url
    text = secrets.reveal(url) if isinstance(url, SecretRef) else url
    try:
        netloc = urlsplit(text).netloc
    except ValueError:
        return REDACTED
    return netloc.rpartition("@")[2] or text


def settings_json(resolution: Resolution) -> dict[str, Any]:
    """Give the resolved orchestration for people to see: secrets hidden, endpoints' URLs shown."""
    document: dict[str, Any] = redact_tree(resolution.orchestration.model_dump())
    for shown, request in zip(document["requests"], resolution.orchestration.requests, strict=True):
        url = request.model.base_url
        if isinstance(url, SecretRef):
            shown["model"]["base_url"] = shown_url(resolution.secrets.reveal(url))
    return document


def dry_run_json(resolution: Resolution, plan: Plan, warnings: Sequence[Problem]) -> dict[str, Any]:
    """The one document of `--dry-run --json`."""
    return {
        "schema": "dry-run/1",
        "orchestration": settings_json(resolution),
        "hosts": {
            request.name: endpoint_host(request.model, resolution.secrets)
            for request in resolution.orchestration.requests
        },
        "results_dir": results_path(resolution),
        "resolved": {
            planned.request.name: {
                "environment": planned.spec.environment.id,
                "early_stop": planned.early_stop,
            }
            for planned in plan.requests
        },
        "warnings": warnings_json(warnings),
    }


def results_path(resolution: Resolution) -> str:
    """Give the results' root as an absolute path."""
    return os.path.abspath(resolution.orchestration.runtime.results_dir)  # noqa: PTH100 — no links


def dry_run_lines(resolution: Resolution, plan: Plan) -> list[str]:
    """Say what would run, for people."""
    whole = resolution.orchestration
    runtime = whole.runtime
    lines = [f"{whole.name}: {counted(len(whole.requests), 'request')}, nothing is run"]
    lines += pairs_lines(
        {
            "task concurrency": whole.task_concurrency,
            "provider limits": _mapping(runtime.provider_limits) or "128 for each built-in",
            "environments opened": _mapping(runtime.env_open_qps, "/s")
            or "local unpaced, remote 10/s",
            "timeout": _seconds(runtime.timeout_seconds),
            "results": results_path(resolution),
            "budget": _mapping(whole.budget.model_dump(exclude_none=True)) or "none",
        }
    )  # fmt: skip
    for planned in plan.requests:
        pairs = _request_pairs(planned, resolution.secrets)
        lines += ["", planned.request.name, *pairs_lines(pairs)]
    return lines


def _request_pairs(planned: RequestPlan, secrets: SecretStore) -> dict[str, object]:
    request = planned.request
    model, execution, attempts = request.model, request.execution, request.execution.attempts
    key = shown_ref(model.api_key) if model.api_key is not None else "none"
    pairs: dict[str, object] = {
        "benchmark": _component(request.benchmark.id, request.benchmark.params),
        "harness": _component(request.harness.id, request.harness.params),
        "environment": _component(_environment(planned), request.environment.params),
        "model": _component(model.id, model.params),
    }
    if (host := endpoint_host(model, secrets)) is not None and planned.spec.model is not None:
        default = ", the protocol's own address" if model.base_url is None else ""
        pairs["endpoint"] = f"{host} ({model.api_protocol}, key {key}{default})"
    stops = "on" if planned.early_stop else "off"
    pairs["attempts"] = f"k {attempts.k}, {attempts.strategy}, early stop {stops}"
    pairs["tasks"] = _filters(request)
    pairs["reuse"] = _reuse(request)
    if execution.max_retries:
        pairs["retries"] = execution.max_retries
    if request.output.run_name or request.output.run_id:
        pairs["output"] = "/".join(
            part for part in (request.output.run_name, request.output.run_id) if part
        )
    if budget := request.budget.model_dump(exclude_none=True):
        pairs["budget"] = _mapping(budget)
    return pairs


def _environment(planned: RequestPlan) -> str:
    written, resolved = planned.request.environment.id, planned.spec.environment.id
    return written if written == resolved else f"{written} → {resolved}"


def _filters(request: Request) -> str:
    execution = request.execution
    filters = []
    if execution.sample_ids is not None:
        filters.append(f"only {', '.join(execution.sample_ids) or 'none'}")
    if execution.exclude_ids:
        filters.append(f"without {', '.join(execution.exclude_ids)}")
    if execution.shard is not None:
        filters.append(f"shard {execution.shard}")
    if execution.limit is not None:
        filters.append(f"at most {execution.limit}")
    chosen = "; ".join(filters) or "all"
    return f"{chosen} (tasks are not loaded by a dry run)"


def _reuse(request: Request) -> str:
    runtime = request.runtime
    if not (runtime.reuse or runtime.reuse_run_id):
        return "no"
    source = runtime.reuse_run_id or "the latest compatible run"
    return source if runtime.checkpoint_resume else f"{source}, no checkpoint resume"


def _component(name: str, params: Mapping[str, Any]) -> str:
    if not params:
        return name
    import json

    shown = redact_tree(params)
    fields = ", ".join(
        f"{key}={json.dumps(value, ensure_ascii=False, default=str)}"
        for key, value in shown.items()
    )
    return f"{name} ({fields})"


def _mapping(values: Mapping[str, Any], unit: str = "") -> str:
    return ", ".join(f"{key} {value:g}{unit}" for key, value in values.items())


def _seconds(value: float) -> str:
    return f"{value:g} s" if value else "none"
