"""The example plug-in is built, installed, listed, used, and passes its own tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from steelyard.testing.endpoint import MockEndpoint

pytestmark = pytest.mark.integration

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
NAME = "steelyard-example-plugin"


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The variables of a machine on which the plug-in is installed."""
    folder = tmp_path_factory.mktemp("plugin")
    # From a copy: a build must not leave anything in the checkout.
    source = shutil.copytree(
        PLUGIN, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "dist")
    )
    _succeed([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"], source)
    (wheel,) = (source / "dist").glob("*.whl")
    uv = shutil.which("uv")
    installer = [uv, "pip"] if uv else [sys.executable, "-m", "pip"]
    target = folder / "site"
    options = ["--offline", "--python", sys.executable] if uv else ["--no-index"]
    _succeed(
        [*installer, "install", *options, "--no-deps", "--target", str(target), str(wheel)], folder
    )
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "PYTHONPATH": str(target),
        "XDG_CONFIG_HOME": str(folder / "xdg"),
    }


def _succeed(command: list[str], folder: Path, variables: Mapping[str, str] | None = None) -> str:
    ended = subprocess.run(
        command,
        cwd=folder,
        env=None if variables is None else dict(variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def test_every_component_is_listed_with_its_package(
    variables: Mapping[str, str], tmp_path: Path
) -> None:
    said = _succeed([sys.executable, "-m", "steelyard", "list", "--json"], tmp_path, variables)
    found = {
        (kind, one["id"]): one["problem"]
        for kind, components in json.loads(said)["components"].items()
        for one in components
        if one["origin"] == NAME
    }
    assert found == {
        ("benchmark", "roman-numerals"): None,
        ("harness", "vote"): None,
        ("environment", "scratch"): None,
        ("analyzer", "answer-lengths"): None,
        ("scanner", "metadata-service"): None,
    }


def test_its_benchmark_harness_and_environment_run(
    variables: Mapping[str, str], tmp_path: Path
) -> None:
    steelyard = [sys.executable, "-m", "steelyard"]
    with MockEndpoint("--text", "xiv") as mock:
        _succeed(
            [
                *[*steelyard, "run", "roman-numerals", "vote", "mock", "--env", "scratch"],
                *["-P", "benchmark.tasks=2", "-P", "harness.votes=3"],
                *["--model-base-url", mock.url, "--model-api-key", "none-needed"],
            ],
            tmp_path,
            variables,
        )
        assert mock.stats()["calls"] == 6
    (records,) = tmp_path.rglob("attempts.jsonl")
    scores = {
        record["task_id"]: record["metrics"]["correct"]
        for line in records.read_text().splitlines()
        for record in [json.loads(line.rpartition("\t")[0])]
    }
    assert scores == {"n14": True, "n53": False}


def test_its_oracle_passes_and_its_nop_does_not(
    variables: Mapping[str, str], tmp_path: Path
) -> None:
    for harness, expected in (("oracle", {True}), ("nop", {False})):
        command = [sys.executable, "-m", "steelyard", "run", "roman-numerals", harness, "none"]
        folder = tmp_path / harness
        folder.mkdir()
        _succeed(command, folder, variables)
        (records,) = folder.rglob("attempts.jsonl")
        lines = records.read_text().splitlines()
        found = {json.loads(line.rpartition("\t")[0])["metrics"]["correct"] for line in lines}
        assert found == expected


def test_its_analyzer_and_scanner_are_found_and_kept_to_their_contracts(
    variables: Mapping[str, str], tmp_path: Path
) -> None:
    program = (
        "from steelyard.components.registry import Kind, find\n"
        "print(find(Kind.ANALYZER, 'answer-lengths').component.__name__,"
        " find(Kind.SCANNER, 'metadata-service').component.__name__)"
    )
    said = _succeed([sys.executable, "-c", program], tmp_path, variables)
    assert said == "AnswerLengths MetadataService\n"


def test_its_own_tests_pass(variables: Mapping[str, str], tmp_path: Path) -> None:
    """Run as its author would: in a folder of its own, against what is installed."""
    shutil.copytree(PLUGIN / "tests", tmp_path / "tests")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    said = _succeed(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        tmp_path,
        variables,
    )
    assert " passed" in said
