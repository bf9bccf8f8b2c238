"""The live view on a real terminal, which is resized, stopped, taken away and closed."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steelyard.results.reader import RunReader, RunState
from tests.cli.tmux import LAUNCH, Pane
from tests.engine.launching import request

pytestmark = pytest.mark.integration

SLOW = request("slow", benchmark={"tasks": 9}, harness={"sleep_s": 60})
STEADY = request("steady", benchmark={"tasks": 400}, harness={"sleep_s": 0.2})

Open = Callable[..., Pane]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open terminals in folders with short paths; all of them are killed at the end."""
    panes: list[Pane] = []
    with tempfile.TemporaryDirectory(prefix="sy-") as folder:

        def open_pane(*requests: dict[str, Any], **settings: Any) -> Pane:
            document = {"requests": list(requests), "task_concurrency": 3}
            Path(folder, "o.json").write_text(json.dumps(document))
            panes.append(Pane(Path(folder), **settings))
            return panes[-1]

        yield open_pane
        for pane in panes:
            pane.kill()


def run_of(pane: Pane, name: str) -> RunReader:
    (root,) = (pane.folder / "results" / name).iterdir()
    return RunReader(root)


def has_ended(pane: Pane, name: str) -> bool:
    return run_of(pane, name).state is RunState.FINISHED


def shell_is_whole(pane: Pane) -> None:
    """The terminal echoes, waits for lines, and has its cursor, as before."""
    pane.type("stty -a | tr ' ' '\\n' | grep -E '^-?(icanon|echo);?$' | xargs echo modes:")
    pane.sees("modes: icanon echo")
    assert pane.has_cursor()


def test_the_view_shows_what_runs_and_its_keys_steer_the_launch(opened: Open) -> None:
    pane = opened(STEADY)
    pane.type(f"{LAUNCH}; echo status=$?")
    pane.sees("running longest")
    pane.sees("3 of at most 3 run")
    pane.sees("ETA")
    assert not pane.has_cursor()
    pane.press("+")
    pane.sees("of at most 4 run")
    pane.press("-", "-")
    pane.sees("of at most 2 run")
    pane.press("p")
    pane.sees("paused ·")
    pane.sees("0 of at most 2 run")
    pane.press("p")
    pane.sees("running ·")
    pane.press("?")
    pane.sees("show or hide this")
    pane.press("?", "Up", "x")
    pane.press("d")
    pane.sees("y/n drain")
    pane.press("n")
    pane.until(lambda: "y/n" not in pane.screen())
    pane.press("d")
    pane.sees("y/n drain")
    pane.press("y")
    pane.sees("status=130")
    everything = pane.history()
    assert "draining: what runs ends, nothing more starts (by the keyboard)" in everything
    assert "running longest" not in everything, "what was drawn is gone"
    assert "Traceback" not in everything
    shell_is_whole(pane)
    kinds = [e["action"] for e in run_of(pane, "steady").events() if e["kind"] == "control"]
    assert kinds == ["concurrency", "concurrency", "concurrency", "pause", "resume", "drain"]


def test_q_asks_and_then_stops_as_a_signal_does(opened: Open) -> None:
    pane = opened(SLOW)
    pane.type(f"{LAUNCH}; echo status=$?")
    pane.sees("running longest")
    pane.press("q")
    pane.sees("y/n stop")
    pane.press("y")
    pane.sees("status=130")
    shell_is_whole(pane)
    finished = run_of(pane, "slow").finished
    assert finished is not None
    assert finished["reason"] == "it was cancelled by the keyboard"


@pytest.mark.parametrize("keys", ["C-c", "TERM"])
def test_a_signal_leaves_the_terminal_as_it_was(opened: Open, keys: str) -> None:
    pane = opened(SLOW)
    pane.type(f"{LAUNCH} & echo $! > pid; fg; echo status=$?")
    pane.sees("running longest")
    if keys == "TERM":
        pane.run("run-shell", f"kill -TERM $(cat {pane.folder}/pid)")
        pane.sees("status=143")
    else:
        pane.press(keys)
        pane.sees("status=130")
    assert "Traceback" not in pane.history()
    shell_is_whole(pane)


def test_the_view_fits_a_terminal_of_any_size(opened: Open) -> None:
    pane = opened(STEADY, request("waits", benchmark={"tasks": 5}), width=100, height=30)
    pane.type(LAUNCH)
    pane.sees("running longest")
    for width, height in ((40, 12), (20, 5), (20, 3), (120, 8)):
        pane.resize(width, height)
        pane.until(lambda: "ALL" in pane.screen().upper())
        assert "Traceback" not in pane.history()
    pane.resize(100, 30)
    pane.sees("running longest")
    assert pane.screen().count("running longest") == 1
    pane.press("C-c")
    pane.sees("cancelled")


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(opened: Open) -> None:
    pane = opened(STEADY)
    pane.type(LAUNCH)
    pane.sees("running longest")
    pane.press("C-z")
    pane.sees("Stopped")
    assert "running longest" not in pane.screen()
    shell_is_whole(pane)
    pane.type("fg")
    pane.sees("running longest")
    pane.press("p")
    pane.sees("paused ·")
    pane.press("C-c")
    pane.sees("cancelled")


def test_after_a_stop_that_none_could_see_coming_keys_are_keys_again(opened: Open) -> None:
    pane = opened(STEADY)
    pane.type(f"{LAUNCH} & echo $! > pid; fg")
    pane.sees("running longest")
    pane.run("run-shell", f"kill -STOP $(cat {pane.folder}/pid)")
    pane.sees("Stopped")
    pane.type("fg")
    pane.until(lambda: pane.screen().rstrip().endswith("stop"))
    pane.press("p")
    pane.sees("paused ·")
    pane.press("C-c")
    pane.sees("cancelled")
    shell_is_whole(pane)


def test_a_background_job_is_never_stopped_for_its_terminal(opened: Open) -> None:
    pane = opened(request("short", benchmark={"tasks": 9}, harness={"sleep_s": 0.5}))
    pane.type(f"stty tostop; ({LAUNCH} > out; echo $? > status) &")
    pane.until(lambda: (pane.folder / "status").exists())
    assert (pane.folder / "status").read_text() == "0\n"
    assert "running longest" not in pane.history()


def test_a_terminal_that_takes_nothing_holds_up_no_run(opened: Open) -> None:
    pane = opened(request("short", benchmark={"tasks": 30}, harness={"sleep_s": 0.2}))
    pane.type(f"{LAUNCH}; echo status=$?")
    pane.sees("running longest")
    pane.press("C-s")
    pane.until(lambda: has_ended(pane, "short"))
    pane.press("C-q")
    pane.sees("status=0")
    shell_is_whole(pane)


def test_a_closed_terminal_stops_the_launch_in_order(opened: Open) -> None:
    pane = opened(SLOW)
    pane.type(LAUNCH)
    pane.sees("running longest")
    pane.close_terminal()
    pane.until(lambda: has_ended(pane, "slow"))
    run = run_of(pane, "slow")
    assert run.finished is not None
    assert run.finished["outcome"] == "cancelled"
    assert "SIGHUP" in run.finished["reason"]
    assert (run.root / "summary.md").exists()
    assert "Traceback" not in (run.root / "run.log").read_text()


def test_under_nohup_a_launch_outlives_its_terminal(opened: Open) -> None:
    pane = opened(request("short", benchmark={"tasks": 40}, harness={"sleep_s": 0.2}))
    pane.type(f"trap '' HUP; {LAUNCH}; echo $? > status")
    pane.sees("running longest")
    pane.close_terminal()
    pane.until(lambda: has_ended(pane, "short"))
    run = run_of(pane, "short")
    assert run.finished is not None
    assert run.finished["outcome"] == "completed"
    pane.until(lambda: (pane.folder / "status").exists())
    assert (pane.folder / "status").read_text() == "0\n"


@pytest.mark.parametrize("setting", [{"LC_ALL": "C"}, {"LC_ALL": "", "LANG": "POSIX"}])
def test_where_only_ascii_can_be_shown_nothing_else_is(
    opened: Open, setting: dict[str, str]
) -> None:
    pane = opened(STEADY, **setting, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    pane.type(LAUNCH)
    pane.sees("running longest")
    assert pane.screen().isascii()
    assert "#" in pane.screen() or "----" in pane.screen()
    pane.press("C-c")
    pane.sees("cancelled")


def test_a_dumb_terminal_gets_plain_lines(opened: Open) -> None:
    pane = opened(request("short", benchmark={"tasks": 9}, harness={"sleep_s": 0.3}))
    pane.type(f"TERM=dumb {LAUNCH}; echo status=$?")
    pane.sees("status=0")
    assert re.search(r"short: \d/9 ended, 3 running", pane.history())
    assert "running longest" not in pane.history()


def test_without_colour_none_is_sent(opened: Open) -> None:
    pane = opened(STEADY, NO_COLOR="1")
    pane.type(LAUNCH)
    pane.sees("running longest")
    coloured = pane.run("capture-pane", "-pet", "t")
    assert "\x1b[32m" not in coloured
    assert "━" in coloured or "─" in coloured
    pane.press("C-c")
    pane.sees("cancelled")
