"""`steelyard init` writes a project that runs at once, and nothing over what is there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.config.starter import EXAMPLE_FILES, PROJECT_FILES

Run = Callable[..., Any]


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_an_empty_project_is_settings_and_ignored_results(steelyard: Run, project: Path) -> None:
    ran = steelyard("init")
    assert ran.status == 0, ran.err
    assert files_below(project) == {"steelyard.yaml", ".gitignore"}
    assert (project / ".gitignore").read_text() == "/results/\n"
    assert "cd " not in ran.out, "it is here"
    assert steelyard("config", "check").status == 0


def test_what_is_commented_out_in_the_settings_is_right_too(
    steelyard: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("MODEL_KEY", "k-1234567890")
    text = PROJECT_FILES["steelyard.yaml"]
    whole = re.sub(r"^( *)# (?=[ a-z_]+(?:-model)?:)", r"\1", text, flags=re.M)
    assert whole.count("\n#") == 1, "only the first lines are words"
    (project / "steelyard.yaml").write_text(whole)
    ran = steelyard("config", "check")
    assert ran.status == 0, ran.err
    shown = steelyard("config", "show").out
    assert "execution.attempts.k" in shown
    assert "prices" in shown


def test_a_project_in_a_new_folder_says_how_to_get_there(steelyard: Run, project: Path) -> None:
    ran = steelyard("init", "my evals/new", "--json")
    assert ran.status == 0
    assert ran.json == {
        "schema": "init/1",
        "files": ["my evals/new/steelyard.yaml"],
        "ignored_in": "my evals/new/.gitignore",
        "next": ["cd 'my evals/new'", "steelyard config check", "steelyard pack init packs/first"],
    }


def test_files_that_are_there_are_all_named_and_nothing_is_written(
    steelyard: Run, project: Path
) -> None:
    (project / "README.md").write_text("mine")
    (project / "example.yaml").symlink_to("nowhere")
    ran = steelyard("init", "--example")
    assert ran.status == 2
    assert "README.md: is there already" in ran.err
    assert "example.yaml: is there already" in ran.err
    assert "--force" in ran.err
    assert files_below(project) == {"README.md"}
    document = steelyard("init", "--example", "--json").json
    assert document["error"]["exit_status"] == 2


def test_force_writes_over_files_but_not_through_links(steelyard: Run, project: Path) -> None:
    (project / "elsewhere").write_text("of somebody else")
    (project / "steelyard.yaml").symlink_to("elsewhere")
    assert steelyard("init", "--force").status == 0
    assert (project / "elsewhere").read_text() == "of somebody else"
    assert (project / "steelyard.yaml").read_text() == PROJECT_FILES["steelyard.yaml"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("*.log", "*.log\n/results/\n"),
        ("*.log\n", "*.log\n/results/\n"),
        ("results/\n", "results/\n"),
        ("a\n/results/\nb\n", "a\n/results/\nb\n"),
    ],
)
def test_an_existing_gitignore_keeps_its_lines(
    steelyard: Run, project: Path, before: str, after: str
) -> None:
    (project / ".gitignore").write_text(before)
    assert steelyard("init").status == 0
    assert (project / ".gitignore").read_text() == after


def test_a_folder_that_cannot_be_made_is_named(steelyard: Run, project: Path) -> None:
    (project / "file").write_text("")
    ran = steelyard("init", "file/below")
    assert ran.status == 2
    assert "file" in ran.err
    assert "cannot be written" in ran.err


@pytest.mark.integration
def test_the_printed_commands_of_the_example_run_at_once(tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
        "LANG": "C.UTF-8",
    }
    (tmp_path / "home").mkdir()

    def shell(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    written = shell("steelyard init first --example")
    assert written.returncode == 0, written.stderr
    assert files_below(tmp_path / "first") == {*EXAMPLE_FILES, ".gitignore"}
    commands = written.stdout.partition("\nnext:\n")[2].split("\n")
    script = " && ".join(line.strip() for line in commands if line.strip())

    ran = shell(script)

    assert ran.returncode == 0, ran.stderr
    table = ran.stdout[ran.stdout.index("request  headline") :]
    rows = {line.split()[0]: line for line in table.split("\n")[1:3]}
    assert set(rows) == {"strong", "quick"}
    for row in rows.values():
        assert re.search(r"correct avg@3 +[01]\.\d{3} +\[[\d., ]+\] +24/24", row), row
    values = {name: float(row.split()[3]) for name, row in rows.items()}
    assert values["strong"] > values["quick"]
    assert not ran.stdout.startswith("listening"), "standard output is the command's"

    checked = shell("cd first && steelyard pack check ./packs/inbox && steelyard config check")
    assert checked.returncode == 0, checked.stderr
    readme = EXAMPLE_FILES["README.md"]
    assert commands[1].strip() in readme


@pytest.mark.integration
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["sh", "-c", 'test -n "$MODEL_URL" && exit 7'], 7),
        (["sh", "-c", "kill -9 $$"], 137),
        (["no-such-program-here"], 2),
    ],
)
def test_a_stand_in_model_beside_a_command_ends_with_its_status(
    command: list[str], status: int
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "steelyard", "mock-model", "--text", "hello", "--", *command],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == status, ran.stderr
    assert ran.stdout == ""
    assert "listening on http://127.0.0.1:" in ran.stderr


@pytest.mark.integration
def test_a_signal_for_the_stand_in_model_reaches_its_command_first() -> None:
    script = 'trap "exit 9" TERM; echo ready; while :; do sleep 0.05; done'
    with subprocess.Popen(
        [sys.executable, "-m", "steelyard", "mock-model", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 9
