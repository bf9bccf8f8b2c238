"""The kill matrix: driver, sandbox and gateway killed, each alone, in every step of an attempt.

Rows are steps, found by watching launches that nothing harms: a step without a row fails, and so
does a way into a session that no launch takes. What must hold: nothing that is on the disk is paid
twice, what was lost is FATAL and never the agent's, what is retried is what was lost, nothing is
left but what `find_leftovers` finds.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pytest

from steelyard.components.issues import IssueCode, Outcome, Severity
from steelyard.engine.events import LaunchResult
from steelyard.engine.work import AGENT_SUFFIX, SCORER_SUFFIX
from steelyard.environments import leftovers
from steelyard.environments.process_trees import find_marked
from steelyard.results.reader import RunReader
from steelyard.testing.endpoint import MockEndpoint
from tests.engine import steps
from tests.engine.launching import records
from tests.engine.steps import Kill, play

pytestmark = pytest.mark.integration

CHILD = Path(__file__).with_name("step_child.py")
Lost = Literal["nothing", "scoring", "whole"]
"""What must be done again: nothing, its scoring, all of it."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is expected of a kill in a step of the watched task."""

    agent_paid: int
    """Calls of the agent's model in all, where the driver is killed and the run gone on with."""
    judge_paid: int
    """The same of the judge's."""
    sandbox: Lost
    """What the loss of the sandbox takes with it."""
    gateway: Lost = "nothing"
    """What the end of the gateway takes with it."""


BEGIN: Final = {
    "agent.open": Row(1, 1, "nothing", "whole"),  # a sandbox is made when it is first used
    "agent.write_file": Row(1, 1, "whole", "whole"),
    "agent.exec": Row(1, 1, "whole", "whole"),
    "agent.call": Row(2, 1, "whole", "whole"),
}
SCORE: Final = {
    "scorer.open": Row(1, 1, "nothing"),
    "scorer.exec": Row(1, 1, "scoring"),
    "judge.call": Row(1, 1, "nothing"),  # the sandbox has done what it was for
    "scorer.close": Row(1, 2, "nothing"),  # its record is not written yet
}
ROWS: Final = {
    "none": {
        **BEGIN,
        "agent.collect": Row(2, 1, "whole"),
        "agent.close": Row(1, 1, "nothing"),
        **SCORE,
    },
    "fresh": {
        **BEGIN,
        "agent.download": Row(2, 1, "whole"),
        "agent.collect": Row(2, 1, "whole"),
        "agent.close": Row(1, 1, "nothing"),
        "scorer.upload": Row(1, 1, "nothing"),
        **SCORE,
    },
    # The environment is what is scored: until the record is written, all goes with it.
    "reuse": {
        **BEGIN,
        "agent.collect": Row(2, 1, "whole"),
        "agent.end_programs": Row(2, 1, "whole"),
        "agent.exec#2": Row(2, 1, "whole"),
        "judge.call": Row(2, 1, "nothing"),
        "agent.close": Row(2, 2, "nothing"),
    },
}
ROWS_OF_KEEPING: Final = {
    "agent.keep": Row(1, 1, "nothing"),
    "scorer.keep": Row(1, 2, "nothing"),
}
"""All other steps of `keep` are those of `fresh`."""
NTH: Final = {"agent.write_file": 2}
"""Before its first use there is nothing of a sandbox."""
NOT_TAKEN: Final = {"read_file", "fixed_network", "change_network"}
"""Ways into a session that `command` and this benchmark do not go: `test_command.py` does, and task
folders whose tests have another network (`harbor/test_phases.py`); what that opens dies with us."""
CASES: Final = [
    (scenario, step, row)
    for scenario, rows in (*ROWS.items(), ("keep", ROWS_OF_KEEPING))
    for step, row in rows.items()
]


def kill_in(step: str, victim: steps.Victim) -> Kill:
    name, _, nth = step.partition("#")
    return Kill(name, victim, int(nth or NTH.get(name, 1)))


@pytest.fixture(scope="module")
def endpoints() -> Iterator[tuple[MockEndpoint, MockEndpoint]]:
    """The agent's, slow enough that something can be killed in a call, and the judge's."""
    with MockEndpoint("--latency", "0.15") as agent, MockEndpoint() as judge:
        yield agent, judge


@dataclass
class Launches:
    """Launches of one folder, and what they have paid so far."""

    folder: Path
    agent: MockEndpoint
    judge: MockEndpoint

    def play(self, scenario: str, *kills: Kill, reuse: bool = False) -> LaunchResult:
        urls = self.agent.url, self.judge.url
        return play(self.folder, *urls, scenario, *kills, reuse=reuse, retries=1)

    def kill_driver(self, scenario: str, *kills: Kill) -> Path:
        """Launch in a process that is killed; give the run that died."""
        words = [str(self.folder), self.agent.url, self.judge.url, scenario, *map(str, kills)]
        child = subprocess.run(
            [sys.executable, str(CHILD), *words], capture_output=True, check=False, timeout=120
        )
        assert child.returncode == -signal.SIGKILL, child.stderr.decode()
        (root,) = (self.folder / "results" / "r").iterdir()
        return root

    def paid(self) -> tuple[int, int]:
        return self.agent.stats()["calls"], self.judge.stats()["calls"]


@pytest.fixture
def launches(tmp_path: Path, endpoints: tuple[MockEndpoint, MockEndpoint]) -> Launches:
    for endpoint in endpoints:
        endpoint.reset()
    return Launches(tmp_path, *endpoints)


def assert_nothing_is_left(tokens: set[str]) -> None:
    found = leftovers.find("watched", sorted(tokens))
    assert not found, found


@pytest.mark.parametrize("scenario", [*ROWS, "keep"])
def test_the_matrix_has_a_row_for_every_step(scenario: str, launches: Launches) -> None:
    result = launches.play(scenario)
    assert [record.outcome for record in records(result)] == [Outcome.SCORED] * 2
    of_keeping = {step.replace(".keep", ".close") for step in ROWS_OF_KEEPING}
    rows = {step.partition("#")[0] for step in ROWS.get(scenario, ROWS["fresh"])}
    if scenario == "keep":
        rows = rows - of_keeping | set(ROWS_OF_KEEPING)
    assert set(steps.watch.seen) == rows
    leftovers.end(sorted(steps.watch.sessions))


def test_the_matrix_knows_every_way_into_a_session() -> None:
    taken = {step.partition("#")[0].partition(".")[2] for _, step, _ in CASES}
    assert steps.ways_in() - NOT_TAKEN == taken - {"open", "call"}


@pytest.mark.parametrize(("scenario", "step", "row"), CASES, ids=lambda value: str(value)[:40])
def test_a_dead_driver_loses_what_was_not_on_the_disk_and_no_more(
    scenario: str, step: str, row: Row, launches: Launches
) -> None:
    root = launches.kill_driver(scenario, kill_in(step, "driver"))
    assert_gone_on_with(launches, scenario, root, row)


def test_a_dead_driver_in_a_retry_of_scoring_does_not_pay_its_agent_again(
    launches: Launches,
) -> None:
    first = Kill("scorer.exec", "sandbox"), Kill("scorer.exec", "driver", 2)
    root = launches.kill_driver("fresh", *first)
    (flight,) = RunReader(root).in_flight
    assert (flight.task_id, flight.execution) == ("t1", 2)
    assert_gone_on_with(launches, "fresh", root, Row(1, 1, "scoring"))


def assert_gone_on_with(launches: Launches, scenario: str, root: Path, row: Row) -> None:
    reader = RunReader(root)
    assert [record.task_id for record in reader.records()] == ["t0"]
    (flight,) = reader.in_flight
    tokens = {flight.token + suffix for suffix in (AGENT_SUFFIX, SCORER_SUFFIX)}
    again = launches.play(scenario, reuse=True)
    ends = {record.task_id: record for record in records(again)}
    assert {name: record.outcome for name, record in ends.items()} == {
        "t0": Outcome.SCORED,
        "t1": Outcome.SCORED,
    }
    assert ends["t0"].reused_from is not None
    assert launches.paid() == (1 + row.agent_paid, 1 + row.judge_paid)
    # Its sandboxes died with the driver; their folders are found, and go when they are to.
    assert not find_marked(sorted(tokens))
    leftovers.end(sorted(tokens | set(steps.watch.sessions)))
    assert_nothing_is_left(tokens)


@pytest.mark.parametrize(("scenario", "step", "row"), CASES, ids=lambda value: str(value)[:40])
def test_a_lost_sandbox_is_fatal_and_what_it_held_is_done_again(
    scenario: str, step: str, row: Row, launches: Launches
) -> None:
    assert_retried(launches, scenario, kill_in(step, "sandbox"), row.sandbox)


OF_GATEWAYS = [case for case in CASES if case[0] == "fresh" or case[1] == "agent.call"]
"""A gateway knows nothing of modes; once the agent has ended, nothing of it."""


@pytest.mark.parametrize(("scenario", "step", "row"), OF_GATEWAYS, ids=lambda v: str(v)[:40])
def test_a_dead_gateway_is_never_the_agents_fault(
    scenario: str, step: str, row: Row, launches: Launches
) -> None:
    assert_retried(launches, scenario, kill_in(step, "gateway"), row.gateway)


def test_a_connection_that_the_system_cuts_is_never_the_agents_fault(launches: Launches) -> None:
    assert_retried(launches, "fresh", Kill("agent.call", "connection"), "whole")


def assert_retried(launches: Launches, scenario: str, kill: Kill, lost: Lost) -> None:
    result = launches.play(scenario, kill)
    used = set(steps.watch.sessions)
    assert steps.watch.seen[kill.step] >= kill.nth
    untouched, hit = records(result)
    assert (untouched.outcome, hit.outcome) == (Outcome.SCORED, Outcome.SCORED)
    assert untouched.executions == 1
    assert hit.executions == (1 if lost == "nothing" else 2)
    grave = [issue for issue in hit.issues if issue.severity is not Severity.WARNING]
    assert {issue.severity for issue in grave} <= {Severity.FATAL}
    assert [issue.code for issue in grave] == [IssueCode.ENVIRONMENT_LOST] * (lost != "nothing")
    if lost == "whole":
        was_paid = kill.step not in ("agent.open", "agent.write_file") and (
            kill.step != "agent.exec" or kill.nth > 1
        )
        assert launches.paid()[0] == 2 + was_paid
    else:
        assert launches.paid()[0] == 2
    assert launches.paid()[1] == 2
    paid = launches.paid()
    again = launches.play(scenario, reuse=True)
    assert [record.outcome for record in records(again)] == [Outcome.SCORED] * 2
    assert launches.paid() == paid
    if scenario == "keep":
        leftovers.end(sorted(used))
    assert_nothing_is_left(used)
