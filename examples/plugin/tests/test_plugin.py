"""Every clause of every contract, for every component of this package."""

# ruff: noqa: D103, S101 — names are sentences; a test is an assertion

from __future__ import annotations

import pytest
from steelyard_example_plugin.answer_lengths import AnswerLengths
from steelyard_example_plugin.metadata_service import MetadataService
from steelyard_example_plugin.roman_numerals import RomanNumerals, roman
from steelyard_example_plugin.scratch import Scratch
from steelyard_example_plugin.vote import Vote

from steelyard.components.environment import NoParams
from steelyard.components.model import ToolCall
from steelyard.components.steps import Step
from steelyard.testing.analyzer_suite import analyzer_suite
from steelyard.testing.benchmark_suite import benchmark_suite
from steelyard.testing.checks import Check
from steelyard.testing.environment_suite import SuiteTraits, environment_suite
from steelyard.testing.fake_harness_context import FakeHarnessContext
from steelyard.testing.fake_model import ScriptedModel
from steelyard.testing.harness_suite import harness_suite
from steelyard.testing.scanner_suite import scanner_suite

CLAIMS = SuiteTraits(
    holds_memory=False,
    holds_processes=False,
    holds_disk=False,
    closes_network=False,
    ends_every_process=False,
    hides_host=False,
)
CURL = Step("agent", "", tool_calls=(ToolCall("1", "sh", "curl -s http://169.254.169.254/latest"),))
HEALTH = Step("agent", "", tool_calls=(ToolCall("1", "sh", "curl http://localhost/health"),))


@pytest.mark.parametrize("check", benchmark_suite(RomanNumerals, {"tasks": 3}), ids=str)
def test_the_benchmark_keeps_its_contract(check: Check) -> None:
    check()


@pytest.mark.parametrize("check", harness_suite(Vote, {"votes": 3}), ids=str)
def test_the_harness_keeps_its_contract(check: Check) -> None:
    check()


@pytest.mark.parametrize("check", environment_suite(lambda: Scratch(NoParams()), CLAIMS), ids=str)
def test_the_environment_keeps_its_contract(check: Check) -> None:
    check()


@pytest.mark.parametrize("check", analyzer_suite(AnswerLengths), ids=str)
def test_the_analyzer_keeps_its_contract(check: Check) -> None:
    check()


@pytest.mark.parametrize(
    "check", scanner_suite(MetadataService, finds=[CURL], passes=[HEALTH]), ids=str
)
def test_the_scanner_keeps_its_contract(check: Check) -> None:
    check()


@pytest.mark.parametrize(("number", "written"), [(4, "IV"), (1994, "MCMXCIV"), (3999, "MMMCMXCIX")])
def test_numbers_are_written_as_numerals(number: int, written: str) -> None:
    assert roman(number) == written


def test_the_answer_that_was_given_most_often_wins() -> None:
    import asyncio

    context = FakeHarnessContext(model=ScriptedModel("IV", "VI", "VI"))
    result = asyncio.run(Vote(Vote.Params(votes=3)).run(context))
    assert (result.answer, result.details["votes"]) == ("VI", 2)
