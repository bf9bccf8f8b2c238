"""What of the remains of runs still stands on this machine, and ending it by its tokens.

A provider is asked, and only one that is built in, installed, or of the settings at hand: a run
folder may come from elsewhere, and what it names must not be imported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from steelyard.components.clock import SystemClock
from steelyard.components.environment import Environment, Leftover
from steelyard.components.registry import Kind, list_components
from steelyard.config.errors import BadInput, SteelyardError
from steelyard.config.secrets import SecretStore
from steelyard.engine.services import EndpointPool, Maker
from steelyard.engine.spec import ComponentSpec
from steelyard.results.documents import part, read_run_document
from steelyard.results.remains import Remains, by_token

log = logging.getLogger(__name__)

_ASK_WAIT_S: Final = 30.0
_END_WAIT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Remains of which something still exists."""

    remains: Remains
    items: tuple[Leftover, ...]

    @property
    def said(self) -> str:
        """What exists, for people."""
        return "; ".join(item.description for item in self.items)


@dataclass(frozen=True, slots=True)
class Found:
    """What stands, and which providers could not be asked."""

    standing: tuple[Standing, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotEnded:
    """Something that could not be ended, with the reason."""

    standing: Standing
    why: str


class Providers:
    """Makes each provider that runs name, once; use it as an asynchronous context manager."""

    def __init__(self, own: Iterable[Environment] = ()) -> None:
        """Take the providers of the settings at hand; they are asked first, and not closed."""
        self._own = {environment.id: environment for environment in own}
        self._made: dict[bytes, Environment] = {}
        secrets, clock = SecretStore(), SystemClock()
        self._maker = Maker(secrets, clock, EndpointPool(secrets, clock), Path.cwd())

    async def __aenter__(self) -> Providers:
        return self

    async def __aexit__(self, *_: object) -> None:
        made, self._made = list(self._made.values()), {}
        for environment in made:
            await environment.close()

    def of(self, remains: Remains) -> Environment:
        """Give the provider of some remains.

        Raises:
            SteelyardError: it is not one that may be asked, or its parameters are no good here.
        """
        if remains.provider in self._own:
            return self._own[remains.provider]
        if remains.provider not in {one.id for one in list_components(Kind.ENVIRONMENT)}:
            raise BadInput(
                f"the environment {remains.provider!r} is neither built in nor installed",
                remedy="run the same settings with --reap, or install its package",
            )
        params = _params(remains)
        key = orjson.dumps([remains.provider, params], option=orjson.OPT_SORT_KEYS)
        if key not in self._made:
            spec = ComponentSpec(remains.provider, params)
            self._made[key] = self._maker.component(Kind.ENVIRONMENT, spec)
        return self._made[key]


def _params(remains: Remains) -> Mapping[str, Any]:
    """Give the parameters that its run had for this provider."""
    document = read_run_document(remains.run)
    if document.get("environment") != remains.provider:
        return {}
    written = part(part(document, "request"), "environment")
    return {name: value for name, value in part(written, "params").items() if value is not None}


async def find_standing(remains: Iterable[Remains], providers: Providers) -> Found:
    """Ask each provider once what of these still exists; each token is given once."""
    problems: dict[str, None] = {}
    standing: list[Standing] = []
    for environment, group in _groups(by_token(remains).values(), providers, problems):
        asked = {one.token: one for one in group}
        try:
            async with asyncio.timeout(_ASK_WAIT_S):
                items = await environment.find_leftovers(list(asked))
        except Exception as error:  # somebody else's code
            log.debug("%s could not be asked for leftovers", environment.id, exc_info=True)
            problems[f"{environment.id} cannot be asked: {error or type(error).__name__}"] = None
            continue
        found: dict[str, list[Leftover]] = {}
        for item in items:
            if item.token in asked:
                found.setdefault(item.token, []).append(item)
        standing += [
            Standing(one, tuple(found[token])) for token, one in asked.items() if token in found
        ]
    return Found(tuple(standing), tuple(problems))


async def end_standing(standing: Sequence[Standing], providers: Providers) -> list[NotEnded]:
    """End what may be ended, and give what still exists afterwards.

    Raises:
        ValueError: the run of one of them may go on; nothing has been ended.
    """
    if any(not one.remains.may_end for one in standing):
        raise ValueError("what a run may still use is not ended")
    known = {one.remains.token: one for one in standing}
    failed: list[NotEnded] = []
    problems: dict[str, None] = {}
    for environment, group in _groups((one.remains for one in standing), providers, problems):
        tokens = [one.token for one in group]
        why = "it is still there"
        try:
            async with asyncio.timeout(_END_WAIT_S):
                items = [item for token in tokens for item in known[token].items]
                await environment.end_leftovers(items)
        except Exception as error:  # somebody else's code
            log.debug("%s could not end leftovers", environment.id, exc_info=True)
            why = str(error) or type(error).__name__
        left = await find_standing(group, providers)
        failed += [NotEnded(one, why) for one in left.standing]
        if left.problems:
            seen = {one.remains.token for one in left.standing}
            failed += [NotEnded(known[t], left.problems[0]) for t in tokens if t not in seen]
    return failed


def _groups(
    remains: Iterable[Remains], providers: Providers, problems: dict[str, None]
) -> list[tuple[Environment, list[Remains]]]:
    groups: dict[int, tuple[Environment, list[Remains]]] = {}
    for one in remains:
        try:
            environment = providers.of(one)
        except SteelyardError as error:
            problems[str(error)] = None
            continue
        groups.setdefault(id(environment), (environment, []))[1].append(one)
    return list(groups.values())
