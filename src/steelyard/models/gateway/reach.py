"""What in a request would make the provider itself reach out for the agent. Pure.

A sandbox has no network, but a provider has: its web search, its MCP connectors, its fetching of
addresses would answer for the agent, and carry out whatever stands in an address. What the agent
runs by itself, functions first of all, is none of this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

OWN_TOOLS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "openai-chat": frozenset({"function", "custom"}),
        "openai-responses": frozenset(
            {
                "function",
                "custom",
                "local_shell",
                "apply_patch",
                "computer",
                "computer_use_preview",
                "namespace",
            }
        ),
        "anthropic": frozenset({"custom"}),
    }
)
"""Kinds of tools whose calls come back to the agent."""
OWN_PREFIXES: Final = ("bash_", "text_editor_", "computer_", "memory_")
"""Of `anthropic`: kinds with a date, run by the client."""
REACHING_FIELDS: Final = (
    "mcp_servers",
    "web_search_options",
    "search_parameters",
    "enable_search",
    "plugins",
    "data_sources",
    "container",
)
"""Each is some provider's; elsewhere it means nothing."""
ADDRESSES: Final = (b"image_url", b"file_url", b'"url"', b"\\u00")
"""No body without one of these names an address that is to be fetched."""


def reaching(protocol: str, data: Mapping[str, Any], raw: bytes) -> str | None:
    """Name what would make the provider reach out; None where nothing would.

    Args:
        protocol: of the path.
        data: the request.
        raw: the same as it came.
    """
    for name in REACHING_FIELDS:
        if data.get(name):
            return name
    for tool in _tools(data):
        kind = tool.get("type", "custom" if protocol == "anthropic" else None)
        is_own = isinstance(kind, str) and (
            kind in OWN_TOOLS[protocol]
            or (protocol == "anthropic" and kind.startswith(OWN_PREFIXES))
        )
        if not is_own:
            return f"the tool {str(kind)[:60]!r}"
    if any(mark in raw for mark in ADDRESSES):
        turns = data.get("input" if protocol == "openai-responses" else "messages")
        if any(_is_fetched(part) for part in _parts(turns)):
            return "an address in place of data"
    return None


def _tools(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [data.get("tools")]
    while waiting:
        for tool in _list(waiting.pop()):
            if isinstance(tool, dict):
                yield tool
                if tool.get("type") == "namespace":
                    waiting.append(tool.get("tools"))


def _parts(turns: Any) -> Iterator[Mapping[str, Any]]:
    """Give every turn and every part of a turn, those of tool results too; no arguments."""
    waiting = [turns]
    while waiting:
        for part in _list(waiting.pop()):
            if isinstance(part, dict):
                yield part
                waiting += [part.get("content"), part.get("output")]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


def _is_fetched(part: Mapping[str, Any]) -> bool:
    source, image = part.get("source"), part.get("image_url")
    if isinstance(source, dict) and "url" in source:
        return True
    if isinstance(image, dict):
        image = image.get("url")
    return any(
        isinstance(url, str) and url[:5].lower() != "data:" for url in (image, part.get("file_url"))
    )
