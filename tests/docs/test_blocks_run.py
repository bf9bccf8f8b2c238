"""What the documents show works: every marked block is run, every named file is written first."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from steelyard.testing.endpoint import MockEndpoint
from tests.docs.blocks import DOCUMENTS, Block, blocks_of, write
from tests.project.checkout import ROOT

pytestmark = pytest.mark.integration

RUN_DOCUMENTS = [
    document
    for document in DOCUMENTS
    if any(block.is_run or block.language == "python" for block in blocks_of(document))
]
PACK = "my-pack/pack.yaml"


@pytest.fixture(scope="module")
def model_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port_file = tmp_path_factory.mktemp("model") / "port"
    # The answer is a program too, for the harness that runs what it is told.
    with MockEndpoint("--text", "echo deny", "--port-file", str(port_file)):
        yield f"http://127.0.0.1:{port_file.read_text().strip()}/v1"


@pytest.mark.parametrize("document", RUN_DOCUMENTS, ids=lambda path: path.name)
def test_every_marked_block_of_a_document_runs(
    document: Path, model_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    variables = _variables(model_url, tmp_path)
    if document.name == "containers.md":
        variables["DOCKER_HOST"] = request.getfixturevalue("container_engine").host
        variables["IMAGE"] = request.getfixturevalue("debian_image")
    write(tmp_path, next(b for b in blocks_of(ROOT / "README.md") if b.file_name == PACK))
    for block in blocks_of(document):
        if block.file_name is not None:
            write(tmp_path, block)
        elif block.language == "python":
            _run(block, [sys.executable, "-c", block.text], tmp_path, variables)
        elif block.is_run:
            shell = ["bash", "-euo", "pipefail", "-c", block.text]
            _run(block, shell, tmp_path, variables)


def _variables(model_url: str, folder: Path) -> dict[str, str]:
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "STEELYARD_"))
    }
    return own | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "no-such-folder"),
        "MODEL_URL": model_url,
        "MODEL_KEY": "a-key-of-the-documents",
    }


def _run(block: Block, command: list[str], folder: Path, variables: Mapping[str, str]) -> None:
    ended = subprocess.run(
        command,
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, f"{block.place}\n{block.text}\n{ended.stdout}"
