"""Path and token → what is to be done; refusals in the protocol's own words. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote

import orjson

from steelyard.models.gateway.requests import Head, Reply

CREATED: Final = 1_700_000_000
"""When the one model was made, as far as its list says; no client minds."""


class Kind(Enum):
    """What a request asks for."""

    CALL = "call"
    """A model call."""
    COUNT = "count"
    """`count_tokens`: passed on, but no model call."""
    MODELS = "models"
    MODEL = "model"
    ROOT = "root"


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes."""

    kind: Kind
    protocol: str = "openai-chat"
    path: str = ""
    """Behind `/v1`; for a model, its id."""
    query: str = ""
    """What of the query is passed on."""


POSTS: Final[Mapping[str, Route]] = MappingProxyType(
    {
        "/chat/completions": Route(Kind.CALL, "openai-chat", "/chat/completions"),
        "/responses": Route(Kind.CALL, "openai-responses", "/responses"),
        "/messages": Route(Kind.CALL, "anthropic", "/messages"),
        "/messages/count_tokens": Route(Kind.COUNT, "anthropic", "/messages/count_tokens"),
    }
)
MAX_TARGET_CHARS: Final = 4096
"""What is longer is nothing of ours."""
_VERSIONS: Final = re.compile(r"^(?:/v1(?=/|$))+")
PASSED_QUERIES: Final = frozenset({"beta=true"})


def route_of(head: Head) -> Route | None:
    """Tell what a request asks for; None where that is nothing of ours.

    A leading `/v1` may be missing or doubled: clients differ in who writes it.
    """
    path, _, query = head.target[:MAX_TARGET_CHARS].partition("?")
    path = _VERSIONS.sub("", unquote(path).rstrip("/"))
    if head.method == "POST":
        found = POSTS.get(path)
        if found is not None and query in PASSED_QUERIES:
            return Route(found.kind, found.protocol, found.path, query)
        return found
    if head.method in ("GET", "HEAD"):
        if not path:
            return Route(Kind.ROOT)
        # Both SDKs ask the same path; only one of them names a version.
        protocol = "openai-chat" if head.get(b"anthropic-version") is None else "anthropic"
        if path == "/models":
            return Route(Kind.MODELS, protocol)
        if path.startswith("/models/"):
            return Route(Kind.MODEL, protocol, path.removeprefix("/models/"))
    return None


def tokens_of(head: Head) -> list[str]:
    """Give what a request shows as its token; some clients fill both headers, one with junk."""
    given = head.get(b"authorization") or b""
    shown = [given[7:]] if given[:7].lower() == b"bearer " else []
    shown += [value for name, value in head.headers if name == b"x-api-key"]
    return [value.strip().decode("latin-1") for value in shown]


def stranger(head: Head, *, is_tcp: bool) -> Reply | None:
    """Refuse what a page in the user's browser could send; None for programs.

    Args:
        head: the request.
        is_tcp: True where it came over a port, which a page can reach under a name of its own.
    """
    if head.get(b"origin") is not None:
        return error_reply("openai-chat", 403, "pages are not served")
    if is_tcp and not _is_loopback((head.get(b"host") or b"").decode("latin-1")):
        return error_reply("openai-chat", 403, "this host name is not served; use 127.0.0.1")
    return None


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


ERROR_TYPES: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "invalid_request_error",
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        504: "timeout_error",
        529: "overloaded_error",
    }
)


def error_reply(
    protocol: str, status: int, message: str, *, code: str | None = None, is_final: bool = True
) -> Reply:
    """Write an error as the protocol has it.

    Args:
        protocol: whose words.
        status: of the answer.
        message: for people.
        code: for programs; only OpenAI's protocols have one.
        is_final: True tells the SDKs not to try again: the gateway already has.
    """
    kind = ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    data: dict[str, Any]
    if protocol == "anthropic":
        data = {"type": "error", "error": {"type": kind, "message": message}}
    else:
        data = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    headers = [(b"content-type", b"application/json")]
    if is_final:
        headers.append((b"x-should-retry", b"false"))
    return Reply(status, orjson.dumps(data), tuple(headers))


def wrong_model(protocol: str, asked: Any, model_id: str) -> Reply:
    """Refuse another model, and name the right one."""
    shown = asked[:100] if isinstance(asked, str) else "(none)"
    return error_reply(
        protocol,
        404,
        f"the model {shown!r} is not served here; this attempt's model is {model_id!r}",
        code="model_not_found",
    )


def model_card(model_id: str) -> dict[str, Any]:
    """Describe the model in a form that clients of all protocols take."""
    return {
        "id": model_id,
        "object": "model",
        "type": "model",
        "display_name": model_id,
        "created": CREATED,
        "created_at": "2023-11-14T22:13:20Z",
        "owned_by": "steelyard",
    }


def local_reply(route: Route, model_id: str) -> Reply:
    """Answer what the gateway knows by itself."""
    if route.kind is Kind.ROOT:
        return _json({"name": "steelyard gateway"})
    if route.kind is Kind.MODELS:
        ends = {"first_id": model_id, "last_id": model_id}
        return _json({"object": "list", "data": [model_card(model_id)], "has_more": False, **ends})
    if route.path == model_id:
        return _json(model_card(model_id))
    return wrong_model(route.protocol, route.path, model_id)


def _json(data: Any) -> Reply:
    return Reply(200, orjson.dumps(data))
