"""What people may ask of an agent program: its version, its bounds, more words and variables."""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    create_model,
    field_validator,
)

from steelyard.config.validation import FieldFault
from steelyard.harnesses.cli_agent.agent import Agent

Word = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]

_EXACT = re.compile(r"[0-9]+(\.[0-9]+)+([-.+]?[0-9A-Za-z]+)*")
_NAME = re.compile(r"[^=\x00]+")


def _exact(version: str) -> str:
    if not _EXACT.fullmatch(version):
        raise FieldFault(
            f"{version!r} is no exact version",
            remedy="write one as 1.2.3: a range or `latest` would be another agent tomorrow",
        )
    return version


Version = Annotated[str, AfterValidator(_exact)]


class AgentParams(BaseModel):
    """`harness: {id: codex, …}`; every agent takes the same."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: Version
    """Of its program, exact; part of the generation identity."""
    install: Literal["cache", "environment"] = "cache"
    """`cache`: installed once on this machine and mounted into each environment. `environment`:
    the environment brings it, and its version is checked."""
    timeout_seconds: PositiveFloat | None = None
    """Of the program's own time, waiting for limits and retries of the model left out; what it did
    is kept. `execution.run_timeout_seconds` counts the agent's whole."""
    max_turns: PositiveInt | None = None
    """How often it may ask its model; ERROR `turn_limit` beyond."""
    args: tuple[Word, ...] = ()
    """More words for its command line, after ours."""
    env: dict[str, Word] = Field(default_factory=dict)
    """More variables of its environment, over ours."""
    web_tools: bool = False
    """Its tools that search or fetch on the provider's side stay on; the gateway lets them pass
    with `model.provider_tools` alone."""
    max_output_bytes: PositiveInt = 32 * 1024 * 1024
    """Kept of what it prints; the rest is read and dropped."""
    install_timeout_seconds: PositiveFloat = 1800
    """Of its installation."""

    @field_validator("env")
    @classmethod
    def _variables(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if not _NAME.fullmatch(name):
                raise FieldFault(
                    f"{name!r} is no name of a variable", name, remedy="a name has no = and no NUL"
                )
        return env


@cache
def params_of(agent_id: str, version: str, counts_turns: bool) -> type[AgentParams]:
    """Make the parameters of one agent, with its own version as default."""
    fields: dict[str, Any] = {"version": (Version, version)}
    base: type[AgentParams] = AgentParams if counts_turns else _Uncounted
    name = "".join(part.capitalize() for part in re.split(r"\W|_", agent_id)) + "Params"
    return create_model(name, __base__=base, **fields)


def params_for(agent: Agent) -> type[AgentParams]:
    """Give the parameters of an agent."""
    return params_of(agent.id, agent.version, bool(agent.turn_arguments))


class _Uncounted(AgentParams):
    """Of an agent whose program has no bound on turns."""

    @field_validator("max_turns")
    @classmethod
    def _none(cls, turns: int | None) -> int | None:
        if turns is not None:
            raise FieldFault(
                "this agent's program has no bound on turns",
                remedy="bound it by timeout_seconds, budget.attempt_tokens or budget.attempt_usd",
            )
        return turns
