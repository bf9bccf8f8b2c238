"""Checks of the environment contract: what a provider declares, and the way to the model."""

# ruff: noqa: S101 — a check is an assertion
from __future__ import annotations

import posixpath

from steelyard.components.contract import check_class
from steelyard.components.environment import EnvironmentDescription, EnvironmentFault
from steelyard.components.values import Trust
from steelyard.testing.environment_suite import Trial, needs
from steelyard.testing.fake_gate import ANSWER, REACH, ClosedGate, FakeGate
from steelyard.testing.harness_checks import check_unavailable

_WEAKEST_FIRST = (Trust.HOST, Trust.CONTAINED, Trust.ISOLATED)


async def it_declares_what_it_is(trial: Trial) -> None:
    """Its class has `api`, `id`, `is_local` and `Params`, and implements `open`."""
    found = type(trial.environment)
    check_class("environment", found.__name__, found)


async def it_says_what_a_machine_lacks(trial: Trial) -> None:
    """`unavailable()` gives None, or says what is missing."""
    check_unavailable(type(trial.environment))


async def a_session_says_what_it_is(trial: Trial) -> None:
    """Its folder is absolute, its trust no better than the provider's best, its provider named."""
    async with trial.session() as session:
        assert posixpath.isabs(session.workdir), session.workdir
        best = _WEAKEST_FIRST.index(trial.environment.best_trust)
        assert _WEAKEST_FIRST.index(session.trust) <= best, (
            f"a session of trust {session.trust}, and the provider's best is "
            f"{trial.environment.best_trust}"
        )
        assert isinstance(session.description, EnvironmentDescription), session.description
        assert session.description.provider, session.description


async def without_a_gateway_there_is_no_way_to_a_model(trial: Trial) -> None:
    """`model_url` is None where `OpenRequest.gate` is."""
    async with trial.session() as session:
        await session.exec(["true"])
        assert session.model_url is None, session.model_url


async def programs_reach_the_gateway(trial: Trial) -> None:
    """`model_url` is None, or a program inside reaches the gateway there."""
    async with FakeGate() as gate, trial.session(gate=gate) as session:
        if session.model_url is None:
            return
        for _ in range(2):
            argv = [trial.traits.python, "-c", REACH, session.model_url]
            result = await session.exec(argv, timeout_s=60)
            assert result.stdout.strip() == ANSWER, result
        assert gate.connections >= 2, "something else has answered"


@needs("closes_network")
async def programs_without_network_reach_the_gateway(trial: Trial) -> None:
    """With `network: none` the gateway, and nothing else, is in reach."""
    async with FakeGate() as gate, trial.session(gate=gate, network="none") as session:
        if session.model_url is None:
            return
        argv = [trial.traits.python, "-c", REACH, session.model_url]
        assert (await session.exec(argv, timeout_s=60)).stdout.strip() == ANSWER
        other = await gate.host_url()
        closed = await session.exec([trial.traits.python, "-c", REACH, other], timeout_s=60)
        assert closed.exit_code != 0, "the host's loopback is in reach"


async def the_way_to_the_gateway_ends_with_the_session(trial: Trial) -> None:
    """Nothing that a session handed to the gateway is served after it is closed."""
    async with FakeGate() as gate:
        async with trial.session(gate=gate) as session:
            if session.model_url is not None:
                argv = [trial.traits.python, "-c", REACH, session.model_url]
                await session.exec(argv, timeout_s=60)
        assert gate.serving == 0, f"{gate.serving} sockets are still served"


async def a_closed_gateway_is_the_providers_fault(trial: Trial) -> None:
    """One that cannot serve ends in an `EnvironmentFault`, or in no `model_url`."""
    try:
        async with trial.session(gate=ClosedGate()) as session:
            result = await session.exec(["true"])
            assert session.model_url is None, f"{session.model_url} leads nowhere: {result}"
    except EnvironmentFault:
        return
