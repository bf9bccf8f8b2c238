"""A task folder's files are looked at before anything runs, all that is wrong at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.benchmarks.harbor.folder import find_tasks, without_canary
from steelyard.benchmarks.harbor.load import LoadedTask, load_folder
from steelyard.config.errors import BadInput
from tests.benchmarks.harbor.task_folders import TOML, write_task


def loaded(root: Path, *, with_images: bool = False, **variables: str) -> dict[str, LoadedTask]:
    return load_folder(root, variables, with_images=with_images)


def said(root: Path, *, with_images: bool = False) -> str:
    with pytest.raises(BadInput) as caught:
        loaded(root, with_images=with_images)
    return str(caught.value)


def refused(root: Path, *, with_images: bool = False) -> str:
    (task,) = loaded(root, with_images=with_images).values()
    return "\n".join(str(problem) for problem in task.refusals)


def test_all_that_is_wrong_in_all_tasks_comes_at_once(tmp_path: Path) -> None:
    write_task(tmp_path, "a", instruction=None, test=None, solve=None)
    write_task(tmp_path, "b", toml="[agent]\ntimeout = 1\n")
    write_task(tmp_path, "c", instruction=" \n", files={"solution/more.txt": "x"}, solve=None)
    text = said(tmp_path)
    for words in (
        "a/instruction.md: the instruction is missing",
        "a/tests/test.sh: the test script is missing",
        "b/task.toml:2:1 agent.timeout: unknown field 'timeout'",
        "c/instruction.md: the instruction is empty",
        "c/solution/solve.sh: the solution has no script",
    ):
        assert words in text, text


@pytest.mark.parametrize("place", ["tests", "environment", "solution"])
def test_a_link_that_leads_out_of_the_task_is_refused(tmp_path: Path, place: str) -> None:
    task = write_task(tmp_path)
    (task / place / "secret").symlink_to("/etc/passwd")
    assert f"one/{place}: the link 'secret' leads out: '/etc/passwd'" in said(tmp_path)


def test_a_folder_or_instruction_that_is_a_link_is_refused(tmp_path: Path) -> None:
    task = write_task(tmp_path, instruction=None, test=None)
    (task / "instruction.md").symlink_to("/etc/hostname")
    (task / "tests").symlink_to("/etc")
    text = said(tmp_path)
    assert "instruction.md: the instruction is missing" in text
    assert "one/tests: the folder is a link" in text


def test_no_folder_and_no_task_are_told_apart(tmp_path: Path) -> None:
    assert "there is no such folder" in said(tmp_path / "none")
    assert "there is no task in it" in said(tmp_path)
    (tmp_path / "file").write_text("x")
    assert "this is a file" in said(tmp_path / "file")


def test_tasks_are_found_below_folders_and_one_task_alone(tmp_path: Path) -> None:
    write_task(tmp_path / "set" / "deep", "b")
    write_task(tmp_path / "set", "a")
    write_task(tmp_path / "set" / ".hidden", "c")
    (tmp_path / "set" / "link").symlink_to(tmp_path / "set" / "a")
    names = [path.name for path in find_tasks(tmp_path / "set")]
    assert names == ["a", "b"]
    assert list(loaded(tmp_path / "set" / "a")) == ["a"]


def test_two_tasks_of_one_name_are_refused(tmp_path: Path) -> None:
    write_task(tmp_path / "x", "same")
    write_task(tmp_path / "y", "same")
    assert "there are two tasks 'same'" in said(tmp_path)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"environment/docker-compose.yaml": "services: {}"}, "several services (compose)"),
        ({"tests/compose.yml": "services: {}"}, "several services (compose)"),
        ({"trajectory.json": "{}"}, "an earlier trajectory"),
        ({"tests/.harborignore": "*.md"}, ".harborignore is not available"),
        ({"task.toml": TOML + "gpus = 2\n"}, "GPU"),
        ({"environment/Dockerfile": "FROM x\nRUN make\n"}, "its Dockerfile has RUN"),
        (
            {
                "task.toml": 'artifacts = ["/etc/hosts"]\n'
                '[verifier]\nenvironment_mode = "separate"\n'
            },
            "outside the working folder /app",
        ),
    ],
)
def test_what_this_version_cannot_run_is_in_order_and_refused(
    tmp_path: Path, files: dict[str, str], words: str
) -> None:
    write_task(tmp_path, files=files)
    text = refused(tmp_path)
    assert words in text, text


def test_without_dockerfile_or_name_there_is_no_image_to_run(tmp_path: Path) -> None:
    task = write_task(tmp_path)
    (task / "environment/Dockerfile").unlink()
    assert "the task names no image" in said(tmp_path, with_images=True)
    assert refused(tmp_path) == ""
    (task / "environment").rmdir()
    assert "the task has no environment" in said(tmp_path)


def test_a_variable_that_nobody_gives_is_asked_for_by_name(tmp_path: Path) -> None:
    toml = '[environment.env]\nA = "${A:-x}"\n[verifier.env]\nKEY = "${MY_KEY}"\n'
    write_task(tmp_path, toml=toml)
    text = said(tmp_path)
    assert "one/task.toml:4:1 verifier.env.KEY: the task asks for the variable MY_KEY" in text
    assert "write `variables: {MY_KEY: ${MY_KEY}}` below the benchmark" in text
    assert "the variable A" not in text
    assert loaded(tmp_path, MY_KEY="k")


def test_the_machines_own_variables_are_never_handed_to_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "of the user")
    write_task(tmp_path, toml='[verifier.env]\nKEY = "${MY_KEY}"\n')
    assert "the variable MY_KEY, which nobody gives" in said(tmp_path)


def test_steps_need_their_folders_and_scripts(tmp_path: Path) -> None:
    toml = '[[steps]]\nname = "first"\n[[steps]]\nname = "second"\n'
    write_task(tmp_path, toml=toml, test=None, files={"steps/first/instruction.md": "Do."})
    text = said(tmp_path)
    assert "one/steps/second: the step's folder is missing" in text
    assert "tests/test.sh: the test script is missing" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<!-- canary GUID 1 -->\n# Canary 2\n\nDo it.\n", "Do it.\n"),
        ("Do it.\n# canary\n", "Do it.\n# canary\n"),
        ("\n\nDo it.", "\n\nDo it."),
    ],
)
def test_marks_for_training_data_are_not_shown(text: str, shown: str) -> None:
    assert without_canary(text) == shown


def test_a_line_that_is_made_to_take_long_does_not(tmp_path: Path) -> None:
    hostile = "<!--" + "canary" * 150_000
    assert without_canary(hostile) == hostile
    hostile = "#" + "canar" * 150_000
    assert without_canary(hostile) == hostile
