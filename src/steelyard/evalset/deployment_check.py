"""Try a deployment: one tiny model call, and one environment opened and closed."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from steelyard.components.clock import AgentTimer, Clock, SystemClock
from steelyard.components.environment import EnvironmentFault, OpenRequest
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.components.known import REGISTRY
from steelyard.components.model import ModelRequest
from steelyard.components.registry import Kind
from steelyard.components.values import Message
from steelyard.config.errors import BadInput, SteelyardError
from steelyard.config.resolve import resolve_orchestration
from steelyard.config.source import Node
from steelyard.engine.plan import make_plan
from steelyard.engine.request_plan import RequestPlan
from steelyard.engine.services import EndpointPool, Maker
from steelyard.engine.spec import ComponentSpec
from steelyard.evalset.agent_refs import Deployment
from steelyard.evalset.project import Project
from steelyard.evalset.references import UnresolvedReferences, deployment_problems
from steelyard.models.calls import LOST, Failure
from steelyard.models.client import Endpoint

_PROMPT: Final = "This is a test of the connection. Answer with the word OK."
_PACK: Final = "code-review"
"""A pack that ships: a request needs one, and none of its cases is looked at."""
_OPEN_S: Final = 300.0
_EXEC_S: Final = 30.0
_CALL_S: Final = 120

BY_STATUS: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "it does not take the request as it is: look at model.params",
        401: "it does not take the key: look at model.api_key",
        402: "the account has no money left",
        403: "the key may not use this model: look at model.api_key and the account",
        405: "it is no endpoint of this protocol: look at model.base_url and model.api_protocol",
        413: "it does not take the request as it is: look at model.params",
        422: "it does not take the request as it is: look at model.params",
        429: "it is busy, or the account's limit is reached: try again later",
    }
)


@dataclass(frozen=True, slots=True)
class Tried:
    """One thing that was tried."""

    what: str
    """`model` or `environment`."""
    ok: bool | None
    """None where there was nothing to try."""
    message: str
    remedy: str | None = None
    took_s: float = 0.0
    cause: str | None = None
    """Of a fault, for programs: `auth`, `dns`, `refused`, `model_not_found`, `address`, …"""

    def as_json(self) -> dict[str, Any]:
        """Give the form that `--json` prints."""
        return {
            "what": self.what,
            "ok": self.ok,
            "message": self.message,
            "remedy": self.remedy,
            "took_s": round(self.took_s, 3),
            "cause": self.cause,
        }


@dataclass(frozen=True, slots=True)
class Check:
    """What trying a deployment has shown; secrets are hidden by whoever prints it."""

    deployment: Deployment
    tried: tuple[Tried, ...]
    usage: Mapping[str, Any]
    """What the model call consumed."""
    secrets: Any

    @property
    def passed(self) -> bool:
        """True where nothing that was tried failed."""
        return all(one.ok is not False for one in self.tried)


def check_deployment(
    deployment: Deployment,
    project: Project,
    *,
    config_files: tuple[Path, ...] = (),
    model: str | None = None,
    clock: Clock | None = None,
) -> Check:
    """Call its model once, open and close its environment. Blocking.

    Args:
        deployment: which.
        project: the project that it is of.
        config_files: as for a run.
        model: in place of its model's id, as an eval set's `models` would.
        clock: the system's by default.

    Raises:
        BadInput: its settings are wrong, or a variable is not set; nothing was tried.
    """
    if problems := deployment_problems(deployment, project):
        raise UnresolvedReferences.of(problems)
    clock = clock or SystemClock()
    resolution = resolve_orchestration(
        _orchestration(deployment, model),
        config_files=config_files,
        environ=project.environ,
        cwd=project.cwd,
        components=REGISTRY,
    )
    plan = make_plan(resolution, clock=clock)
    request = plan.requests[0]
    lacking = tuple(
        Tried("machine", False, problem.message, problem.remedy, cause="lacking")
        for problem in plan.lacking
    )
    pool = EndpointPool(resolution.secrets, clock)
    maker = Maker(resolution.secrets, clock, pool, resolution.base_dir)
    model_tried, usage, environment = asyncio.run(_try_all(request, maker, clock))
    return Check(deployment, (*lacking, model_tried, environment), usage, resolution.secrets)


def _orchestration(deployment: Deployment, model: str | None) -> Node:
    origin = deployment.node.origin

    def node(value: Any) -> Node:
        return Node(value, origin)

    parts = dict(deployment.parts)
    settings = dict(parts["model"].value) if "model" in parts else {}
    if model is not None:
        settings["id"] = node(model)
    # One call that fails shall say so at once.
    settings |= {"max_request_retries": node(0), "request_timeout_seconds": node(_CALL_S)}
    parts["model"] = Node(settings, parts["model"].origin if "model" in parts else origin)
    request = {
        **parts,
        "name": node("check"),
        "benchmark": node({"id": node(_PACK)}),
    }
    return node(
        {
            "name": node("check"),
            # A price that is not known is no reason not to try.
            "runtime": node({"allow_unpriced": node(True)}),
            "requests": node([node(request)]),
        }
    )


async def _try_all(
    request: RequestPlan, maker: Maker, clock: Clock
) -> tuple[Tried, Mapping[str, Any], Tried]:
    try:
        model, usage = await _model(request, maker, clock)
    finally:
        await maker.endpoints.close()
    return model, usage, await _environment(request, maker)


async def _model(
    request: RequestPlan, maker: Maker, clock: Clock
) -> tuple[Tried, Mapping[str, Any]]:
    spec = request.spec
    if spec.model is None:
        return Tried("model", None, f"{spec.harness.id} calls no model"), {}
    endpoint = maker.endpoints.get(spec.model, spec.prices)
    asked = ModelRequest((Message("user", _PROMPT),))
    started_s = time.perf_counter()
    try:
        made = await endpoint.call(asked, AgentTimer(clock), lambda: None)
    except (AttemptFault, SteelyardError) as error:
        took_s = time.perf_counter() - started_s
        return Tried("model", False, str(error), None, took_s, "settings"), {}
    took_s = time.perf_counter() - started_s
    if isinstance(made.outcome, Failure):
        return await _failed(endpoint, made.outcome, took_s), {}
    usage = endpoint.usage_of(made.outcome.counts)
    consumed = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
    }
    name = endpoint.settings.model_id
    said = f"{name} answered in {took_s:.2g} s: {usage.input_tokens} tokens in, "
    said += f"{usage.output_tokens} out"
    if made.outcome.counts is None:
        said = f"{name} answered in {took_s:.2g} s; it does not say what that consumed"
    if usage.cost_usd is not None:
        said += f", ${usage.cost_usd:.2g}"
    return Tried("model", True, said, None, took_s), consumed


async def _failed(endpoint: Endpoint, failure: Failure, took_s: float) -> Tried:
    cause, remedy = await _cause(endpoint, failure)
    origin = endpoint.settings.address.origin
    return Tried("model", False, f"{origin} {failure.message}", remedy, took_s, cause)


async def _cause(endpoint: Endpoint, failure: Failure) -> tuple[str, str]:
    """Tell what is to be mended, by the answer where there is one."""
    name, host = endpoint.settings.model_id, endpoint.settings.address.parts.hostname or ""
    code = failure.verdict.code
    if failure.answer is None:
        if code is IssueCode.MODEL_TIMED_OUT:
            return "timeout", f"no answer within {_CALL_S} s: is the model loaded, is it busy?"
        if failure.verdict == LOST and not await _is_known_host(endpoint):
            return "dns", f"nobody knows the host {host}: look at model.base_url, and the network"
        if any(word in failure.message for word in ("refused", "Connect call failed")):
            return "refused", f"nothing listens there: start it, or look at model.base_url ({host})"
        if code is IssueCode.MODEL_ENDPOINT_REJECTED:
            return "certificate", "install the certificate's authority, or use the right host name"
        return "connection", "look at model.base_url, the network and the proxy's variables"
    status = failure.answer.status
    if status == 404:
        body = failure.answer.body.decode("utf-8", "replace").lower()
        if "model" in body:
            return "model_not_found", f"it has no model {name!r}: look at model.id"
        return "address", "nothing is at this path: base_url ends with /v1 at most endpoints"
    if 200 <= status <= 299:
        protocol = endpoint.settings.protocol.name
        return "protocol", f"that is no answer of {protocol}: look at base_url and api_protocol"
    if status >= 500:
        return "unavailable", "the endpoint has trouble of its own: try again later"
    named = {401: "auth", 403: "auth", 402: "quota", 429: "busy"}.get(status, "request")
    return named, BY_STATUS.get(status, "look at model.base_url and model.api_protocol")


async def _is_known_host(endpoint: Endpoint) -> bool:
    host = endpoint.settings.address.parts.hostname or ""
    try:
        await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return True


async def _environment(request: RequestPlan, maker: Maker) -> Tried:
    spec, traits = request.spec.environment, request.services.harness.traits
    if request.request.environment.id == "auto" and not traits.runs_model_code:
        from steelyard.environments.auto import resolve_auto

        try:  # packs may run programs
            spec = ComponentSpec(await asyncio.to_thread(resolve_auto, True), spec.params)
        except BadInput as error:
            said = f"{request.spec.harness.id} needs none; a pack that runs programs would: "
            problem = error.problems[0]
            return Tried("environment", None, said + problem.message, problem.remedy)
    started_s = time.perf_counter()
    try:
        trust = await _opened(spec, maker)
    except TimeoutError:
        message = f"{spec.id} was not open within {_OPEN_S:g} s"
        remedy = "`steelyard doctor` looks at it"
    except (EnvironmentFault, SteelyardError, OSError) as error:
        message, remedy = f"{spec.id}: {error}", "`steelyard doctor` looks at this machine"
    else:
        took_s = time.perf_counter() - started_s
        said = f"{spec.id} opened and closed in {took_s:.2g} s, trust {trust}"
        return Tried("environment", True, said, None, took_s)
    took_s = time.perf_counter() - started_s
    return Tried("environment", False, message, remedy, took_s, "environment")


async def _opened(spec: ComponentSpec, maker: Maker) -> str:
    """Open a session, run a program in it, close it; give its trust."""
    environment = maker.component(Kind.ENVIRONMENT, spec)
    try:
        async with asyncio.timeout(_OPEN_S):
            session = await environment.open(OpenRequest(f"check-{secrets.token_hex(8)}"))
            try:
                done = await session.exec(["sh", "-c", "echo ready"], timeout_s=_EXEC_S)
            finally:
                await session.close()
    finally:
        await environment.close()
    if done.stdout.strip() != b"ready":
        said = done.stderr_text.strip()[-200:]
        raise EnvironmentFault(f"a program in it ended with {done.exit_code}: {said}")
    return str(session.trust.value)
