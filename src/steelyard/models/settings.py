"""`ModelSettings` as the client uses them: secrets revealed, headers and address made.

What this gives holds secrets in clear: it is never logged, compared or written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from steelyard.config.errors import BadInput, Problem, Where
from steelyard.config.secret_names import is_secret_name
from steelyard.config.secrets import MARKER, SecretRef, SecretStore
from steelyard.models.address import Address, header_pairs, parse_address
from steelyard.models.protocols import PROTOCOLS
from steelyard.models.protocols.encoding import encode
from steelyard.models.protocols.form import WireProtocol


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """`ModelSettings`, secrets revealed."""

    model_id: str
    protocol: WireProtocol
    address: Address = field(repr=False)
    headers: tuple[tuple[bytes, bytes], ...] = field(repr=False)
    params: Mapping[str, Any] = field(repr=False)
    max_request_retries: int
    max_connections: int
    rpm: float | None
    tpm: float | None
    request_timeout_s: float | None
    max_response_bytes: int
    provider_tools: bool
    """True where agents may have the provider reach out for them."""
    headers_by_protocol: Mapping[str, tuple[tuple[bytes, bytes], ...]] = field(repr=False)
    """The gateway passes calls of every protocol on; a key goes where that protocol wants it."""
    extra_header_names: frozenset[bytes]
    """Nobody may send another value of these."""
    secrets: tuple[str, ...] = field(repr=False)
    """What the endpoint knows and nobody behind the gateway may learn."""


def parse_settings(settings: Mapping[str, Any], secrets: SecretStore) -> EndpointSettings:
    """Reveal and check `ModelSettings`.

    Args:
        settings: as JSON, secrets in their `$secret` form.
        secrets: where their values are.

    Raises:
        BadInput: an address, header or parameter that cannot be sent.
        SecretUnavailable: this process has no value for a secret.
    """
    protocol = PROTOCOLS[settings.get("api_protocol") or "openai-chat"]
    params = secrets.reveal_tree(settings.get("params") or {})
    problems = _param_problems(protocol, params)
    try:
        address = parse_address(
            secrets.reveal_tree(settings.get("base_url")) or protocol.default_base_url
        )
    except BadInput as error:
        raise BadInput.of([*problems, *error.problems]) from None
    if problems:
        raise BadInput.of(problems)
    key = secrets.reveal_tree(settings.get("api_key"))
    written = secrets.reveal_tree(settings.get("extra_headers") or {})
    # Settings with a fault are looked at, too: of what is no text the schema has spoken.
    extra = {name: value for name, value in written.items() if isinstance(value, str)}
    headers = {
        name: tuple(header_pairs(_headers(wire, address, key, extra)))
        for name, wire in PROTOCOLS.items()
    }
    timeout_s = float(settings.get("request_timeout_seconds", 600))
    return EndpointSettings(
        model_id=settings["id"],
        protocol=protocol,
        address=address,
        headers=headers[protocol.name],
        params=params,
        max_request_retries=settings.get("max_request_retries", 5),
        max_connections=settings.get("max_connections", 64),
        rpm=settings.get("rpm"),
        tpm=settings.get("tpm"),
        request_timeout_s=timeout_s or None,
        max_response_bytes=settings.get("max_response_bytes", 16 * 1024 * 1024),
        provider_tools=bool(settings.get("provider_tools")),
        headers_by_protocol=headers,
        extra_header_names=frozenset(name.lower().encode("ascii") for name in extra),
        secrets=tuple(
            sorted(
                {key or ""}
                | _header_secrets(extra)
                | _url_secrets(address)
                | _referred(settings.get("params"), secrets)
            )
        ),
    )


def _headers(
    protocol: WireProtocol, address: Address, key: str | None, extra: Mapping[str, str]
) -> dict[str, str]:
    return {
        "host": address.origin.partition("://")[2],
        "user-agent": "steelyard",
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        **protocol.fixed_headers,
        **({"authorization": address.basic_auth} if address.basic_auth else {}),
        **(protocol.auth_headers(key) if key else {}),
        **{name.lower(): value for name, value in extra.items()},
    }


def _header_secrets(extra: Mapping[str, str]) -> set[str]:
    """Give the header values that are secret by their name, or look like it.

    Not every one: `research` in a header must not be covered wherever a model writes it.
    """
    found = set()
    for name, value in extra.items():
        word = value.strip().rpartition(" ")[2]  # behind `Bearer`
        looks_random = len(word) >= 16 and any(c.isdigit() for c in word)
        if is_secret_name(name) or looks_random:
            found |= {value.strip(), word}
    return found


def _url_secrets(address: Address) -> set[str]:
    """Give what of a base URL is secret: its password, and query values by their name."""
    password = address.parts.password or ""
    basic = (address.basic_auth or "").rpartition(" ")[2]
    pairs = parse_qsl(address.parts.query)
    return {password, unquote(password), basic, *(v for name, v in pairs if is_secret_name(name))}


def _referred(tree: Any, secrets: SecretStore) -> set[str]:
    """Give the values of every secret that a tree of parameters refers to."""
    if isinstance(tree, SecretRef):
        return {secrets.reveal(tree)}
    if isinstance(tree, Mapping):
        if set(tree) == {MARKER}:
            return {secrets.reveal(SecretRef(tree[MARKER]))}
        return {value for item in tree.values() for value in _referred(item, secrets)}
    if isinstance(tree, list | tuple):
        return {value for item in tree for value in _referred(item, secrets)}
    return set()


def _param_problems(protocol: WireProtocol, params: Mapping[str, Any]) -> list[Problem]:
    problems = [
        Problem(
            f"{name} would replace what the harness sends",
            Where(field=f"model.params.{name}"),
            "leave it out" if name != "model" else "write the model's id as model.id",
        )
        for name in sorted(protocol.reserved & set(params))
        if not (name == "stream" and params[name] is False)
    ]
    try:
        encode(params)
    except (ValueError, TypeError) as error:
        problems.append(Problem(f"cannot be sent as JSON: {error}", Where(field="model.params")))
    return problems
