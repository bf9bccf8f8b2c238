"""A results folder that cannot be written: exit 2 and where it was named, nothing made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bad_input.command import HEAD, assert_refused, steelyard, steelyard_here

pytestmark = pytest.mark.integration

TWO = HEAD + "  - name: a\n  - name: b\n"
FOLDERS = {
    "a file": ("p/pack.yaml", "it is not a folder"),
    "below a file": ("p/pack.yaml/results", "it is not a folder"),
    "a name too long": ("x" * 300, "File name too long"),
    "a path too long": ("/".join(["y" * 100] * 60), "File name too long"),
    "a link that leads nowhere": ("dangling", "leads nowhere"),
    "a file of the system": ("/dev/null/results", "it is not a folder"),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_that_cannot_be_is_refused_once_for_all_requests(project: Path, case: str) -> None:
    folder, reason = FOLDERS[case]
    (project / "dangling").symlink_to("nowhere")
    (project / "o.yaml").write_text(TWO)
    said = ["--results-dir: the results folder", reason, "choose another with `--results-dir`"]
    assert_refused(project, "launch", "o.yaml", "--results-dir", folder, said=said)
    ran = steelyard_here(project, "launch", "o.yaml", "--results-dir", folder)
    assert ran.err.count("error:") == 1


def test_a_folder_named_in_a_file_has_that_place(project: Path) -> None:
    (project / "o.yaml").write_text(TWO + "runtime: {results_dir: p/pack.yaml}\n")
    said = ["o.yaml:8:24 runtime.results_dir: the results folder", "not a folder"]
    assert_refused(project, "launch", "o.yaml", said=said)


def test_a_request_whose_folder_is_a_file_is_refused_before_the_others_start(
    project: Path,
) -> None:
    (project / "o.yaml").write_text(TWO)
    (project / "results").mkdir()
    (project / "results" / "b").write_text("in the way")
    assert_refused(project, "launch", "o.yaml", said=["results/b cannot be written: it is not"])


def test_a_place_that_only_the_try_shows_is_exit_2_too(project: Path) -> None:
    """`/proc` says that root may write there."""
    ran = steelyard(
        project, "run", "./p", "oracle", "none", "--results-dir", "/proc/steelyard", status=2
    )
    assert "the results folder /proc/steelyard cannot be written" in ran.err
    assert "choose another with `--results-dir`" in ran.err


def test_a_read_only_file_system_is_refused(project: Path) -> None:
    (project / "ro").mkdir()
    (project / "o.yaml").write_text(TWO)
    script = (
        'mount -t tmpfs -o ro none ro && exec "$0" -m steelyard launch o.yaml --results-dir ro/r'
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, sys.executable],
        cwd=project, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "--results-dir: the results folder ro cannot be written: permission" in done.stderr
