"""`steelyard env` lists, enters and ends what runs kept or left; in a terminal, with its keys."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from steelyard.cli.env import env
from steelyard.components.environment import EnvironmentFault
from steelyard.components.session_folders import find_folders
from steelyard.environments.host_process import HostProcess
from steelyard.environments.process_trees import find_marked
from tests.cli.conftest import Run
from tests.cli.tmux import Pane
from tests.engine.keeping import HERE, closed, listed, looking
from tests.engine.launching import COMPONENTS, run_all

ENTER = f"{sys.executable} -m steelyard env enter"


@pytest.fixture
def results(project: Path) -> Iterator[Path]:
    """A results folder with an agent's and a scorer's kept folder on the host."""
    run_all(project, looking("host_process"))
    folder = project / "results"
    yield folder
    closed(folder)


def test_alone_it_says_what_it_is_for(steelyard: Run) -> None:
    alone = steelyard("env")
    assert (alone.status, alone.out) == (0, steelyard("env", "--help").out)


def test_where_nothing_is_it_says_so(steelyard: Run, project: Path) -> None:
    (project / "results").mkdir()
    assert "no run below results has kept or left anything" in steelyard("env", "list").out
    assert "there is nothing to end below results" in steelyard("env", "close", "--all").out


@pytest.mark.parametrize(
    ("words", "said", "remedy"),
    [
        (("list", "absent"), "absent is no folder", "name a results folder"),
        (("close", "."), "say what to end", "`steelyard env list` shows"),
        (("close", ".", "--all", "--id", "x"), "say what to end", "`steelyard env list` shows"),
        (("close", ".", "--id", "x", "--id", "y"), "knows 'x'", "`steelyard env list` shows"),
        (("close", ".", "--id", "x", "--id", "y"), "knows 'y'", "`steelyard env list` shows"),
        (("enter", "--in", ".", "x"), "no run below . knows 'x'", "--in"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_remedy(
    steelyard: Run, words: tuple[str, ...], said: str, remedy: str
) -> None:
    ran = steelyard("env", *words)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err
    assert remedy in ran.err
    errors = steelyard("env", words[0], "--json", *words[1:]).json
    assert said in json.dumps(errors)


@pytest.mark.integration
def test_the_list_names_each_with_its_task_and_the_commands(steelyard: Run, results: Path) -> None:
    out = steelyard("env", "list").out
    (run_dir,) = (results / "r").iterdir()
    for one in listed(results):
        row = next(line for line in out.splitlines() if line.startswith(one["id"]))
        assert row.split()[1:4] == ["kept", one["of"], "t0"]
        assert f"  steelyard env enter --in {run_dir} {one['id']}\n" in out
    assert f"2 environments can be ended: `steelyard env close {results} --all`" in out
    assert steelyard("env", "list", str(run_dir)).out.count(" kept ") == 2


@pytest.mark.integration
def test_one_is_ended_by_its_id_and_the_other_stays(steelyard: Run, results: Path) -> None:
    first, second = [one["id"] for one in listed(results)]
    near = steelyard("env", "close", "--id", first[:-1] + "x")
    assert "did you mean" in near.err
    assert len(listed(results)) == 2
    ended = steelyard("env", "close", "--id", first)
    assert (ended.status, f"ended {first}: folder " in ended.out) == (0, True)
    assert [one["id"] for one in listed(results)] == [second]
    again = steelyard("env", "close", "--id", first)
    assert (again.status, again.out) == (0, "nothing of it is left\n")
    gone = steelyard("env", "enter", first, "true")
    assert gone.status == 1
    assert f"nothing of {first} is left on this machine" in gone.err


@pytest.mark.integration
def test_a_folder_that_was_removed_by_hand_is_not_listed(steelyard: Run, results: Path) -> None:
    for _, folder in find_folders([one["id"] for one in listed(results)]):
        subprocess.run(["rm", "-r", str(folder)], check=True)
    assert listed(results) == []


@pytest.mark.integration
def test_what_could_not_be_asked_about_is_not_said_to_be_gone(
    steelyard: Run, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreachable(*_: object) -> None:
        raise EnvironmentFault("the engine does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(HostProcess, "find_leftovers", unreachable)
        found = CliRunner().invoke(env, ["list", str(results)])
    assert "cannot be asked: the engine does not answer" in found.stderr
    assert found.stdout.endswith("left anything on this machine that could be asked about\n")
    assert len(listed(results)) == 2


@pytest.mark.integration
def test_what_its_own_engine_enters_is_answered_with_that_command(
    steelyard: Run, results: Path
) -> None:
    (run_dir,) = (results / "r").iterdir()
    one = listed(results)[0]
    from steelyard.results.lines import LineFile, encode

    events = [event for _, event in LineFile(run_dir / "events.jsonl")]
    for event in events:
        if event["kind"] == "kept":
            event["enter"] = ["podman", "exec", "-it", "name", "/bin/sh"]
    (run_dir / "events.jsonl").write_bytes(b"".join(map(encode, events)))
    refused = steelyard("env", "enter", one["id"], "true")
    assert (refused.status, refused.out) == (2, "")
    assert "podman exec -it name /bin/sh" in refused.err


@pytest.mark.integration
def test_a_journal_cannot_name_a_folder_that_is_not_a_sessions(
    steelyard: Run, results: Path
) -> None:
    (run_dir,) = (results / "r").iterdir()
    victim = results / "victim"
    victim.mkdir()
    (one, _) = listed(results)
    from steelyard.results.lines import LineFile, encode

    events = [event for _, event in LineFile(run_dir / "events.jsonl")]
    for event in events:
        if event["kind"] == "kept":
            event["state"]["folder"] = os.path.relpath(victim, "/tmp")
    (run_dir / "events.jsonl").write_bytes(b"".join(map(encode, events)))
    entered = steelyard("env", "enter", "--in", str(run_dir), one["id"], "touch", "was-here")
    assert (entered.status, list(victim.iterdir())) == (1, [])


@pytest.mark.integration
def test_a_run_folder_from_elsewhere_makes_nothing_be_imported(
    steelyard: Run, project: Path, results: Path
) -> None:
    (run_dir,) = (results / "r").iterdir()
    evil = project / "evil.py"
    evil.write_text("open('imported', 'w')\n")
    text = (run_dir / "events.jsonl").read_text()
    from steelyard.results.lines import LineFile, encode

    events = [event for _, event in LineFile(run_dir / "events.jsonl")]
    for event in events:
        if event["kind"] == "kept":
            event["provider"] = f"{evil}:Environment"
    (run_dir / "events.jsonl").write_bytes(b"".join(map(encode, events)))
    ran = steelyard("env", "list")
    assert (ran.status, "neither built in nor installed" in ran.err) == (0, True)
    assert not (project / "imported").exists()
    assert steelyard("env", "close", "--all").status == 1
    (run_dir / "events.jsonl").write_text(text)


@pytest.mark.integration
def test_in_a_terminal_it_is_a_shell_with_jobs_and_the_keys_of_one(tmp_path: Path) -> None:
    run_all(tmp_path, looking("sandbox"))
    one = next(one for one in listed(tmp_path / "results") if one["of"] == "task")
    nap = f"600.{secrets.randbelow(10**9):09}"
    pane = Pane(tmp_path, width=120)
    try:
        pane.type(f"{ENTER} --in {tmp_path}/results {one['id']}")
        pane.until(lambda: "`exit` leaves it" in pane.screen())
        pane.type("cat agent.txt; stty size; cat /proc/net/dev | wc -l")
        pane.until(lambda: "by the agent" in pane.screen() and "24 120" in pane.screen())
        pane.type(f"sleep {nap}")
        pane.until(lambda: any(nap in found.command for found in find_marked([one["id"]])))
        pane.press("C-c")
        deadline = time.monotonic() + 20
        while any(nap in found.command for found in find_marked([one["id"]])):
            assert time.monotonic() < deadline, "Ctrl-C did not reach the program inside"
            time.sleep(0.05)
        pane.resize(100, 30)
        pane.type("stty size")
        pane.until(lambda: "30 100" in pane.screen())
        pane.type("exit 3")
        pane.until(lambda: pane.screen().rstrip().endswith("\n$"))
        pane.type("echo ended with $?, $(stty -a | grep -c -- ' -echo ')")
        pane.until(lambda: "ended with 3, 0" in pane.screen())
        assert find_marked([one["id"]]) == []
    finally:
        pane.kill()
        closed(tmp_path / "results")


def _naps(token: str) -> bool:
    """True once the program itself runs: bubblewrap, still at its start, can be left behind."""
    return any(found.command == "sleep 600" for found in find_marked([token]))


@pytest.mark.integration
def test_a_person_who_is_gone_leaves_no_program_in_it(tmp_path: Path) -> None:
    run_all(tmp_path, looking("sandbox"))
    one = listed(tmp_path / "results")[0]
    words = [sys.executable, "-m", "steelyard", *one["enter"][1:], "sleep", "600"]
    env = {**os.environ, "PYTHONPATH": str(COMPONENTS.parents[2])}
    with subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL) as entered:
        deadline = time.monotonic() + 60
        while not _naps(one["id"]) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert _naps(one["id"])
        entered.kill()
    deadline = time.monotonic() + 20
    while find_marked([one["id"]]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert find_marked([one["id"]]) == []
    closed(tmp_path / "results")
    assert listed(tmp_path / "results") == []


@pytest.mark.integration
def test_run_says_at_its_end_how_each_is_entered(steelyard: Run, project: Path) -> None:
    options = ("--env", "host_process", "--keep-environment", "--progress", "plain")
    ran = steelyard(
        "run", f"{HERE}:Looked", f"{HERE}:Writer", "none", "-P", "benchmark.tasks=1", *options
    )
    assert ran.status == 0, ran.err
    found = listed(project / "results")
    assert len(found) == 2
    for one in found:
        assert f"t0 attempt 1, {one['of']}: `{' '.join(one['enter'])}`" in ran.out
    assert f"kept, until `steelyard env close {found[0]['run']} --all`" in ran.out
    closed(project / "results")


def test_reap_is_an_option_of_both(steelyard: Run) -> None:
    for command in ("run", "launch"):
        assert "--reap" in steelyard(command, "--help").out
