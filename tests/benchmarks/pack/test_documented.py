"""What `docs/validators.md` shows of each validator is what it has, and what it does."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from steelyard.benchmarks.pack.schema_validators import VALIDATOR_MODELS
from steelyard.benchmarks.pack.schema_validators.base import TextValidatorSpec, ValidatorSpec
from steelyard.components.model import ToolCall
from steelyard.components.steps import Step
from tests.benchmarks.judging import JudgedContext, says
from tests.benchmarks.scoring import opened, score
from tests.project.checkout import ROOT

JUDGE_OF_PACK = {"model": {"id": "j", "base_url": "http://127.0.0.1:9/v1"}}
TEXT = (ROOT / "docs/validators.md").read_text()
SECTIONS = dict(
    re.findall(r"^### `(\w+)`\n(.*?)(?=^###? |\Z)", TEXT, flags=re.MULTILINE | re.DOTALL)
)
EXAMPLES = [
    (name, block)
    for name, text in SECTIONS.items()
    for block in re.findall(r"^```yml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
]


def test_every_validator_has_a_section_and_an_example() -> None:
    assert set(SECTIONS) == set(VALIDATOR_MODELS)
    assert {name for name, _ in EXAMPLES} == set(SECTIONS)
    for text in SECTIONS.values():
        assert "\nHostile: " in text


@pytest.mark.parametrize("name", SECTIONS)
def test_the_table_of_fields_is_complete_and_says_the_defaults(name: str) -> None:
    model = VALIDATOR_MODELS[name]
    shared = {*TextValidatorSpec.model_fields} if "on" in model.model_fields else {
        *ValidatorSpec.model_fields
    }  # fmt: skip
    own = {
        field.alias or key: field
        for key, field in model.model_fields.items()
        if key not in shared and key != "type"
    }
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in SECTIONS[name].split("\n")
        if line.startswith("| `")
    ]
    shown = {key: row[1] for row in rows for key in re.findall(r"`(\w+)`", row[0])}
    algorithms = set(own["algorithm"].annotation.__args__) if name == "fuzzy" else set()
    assert set(shown) == set(own) | algorithms
    for key, field in own.items():
        default = field.default
        if isinstance(default, bool | int | float) and key != "max_bytes":
            assert shown[key] in (str(default).lower(), f"{default:g}", ""), key
        elif isinstance(default, str) and default:
            assert shown[key] == f"`{default}`", key


@pytest.mark.integration
@pytest.mark.parametrize(("name", "block"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_examples_pass_and_fail_as_shown(name: str, block: str, tmp_path: Path) -> None:
    shown = YAML(typ="safe").load(block)
    assert shown["validator"]["type"] == name
    root = tmp_path / "pack"
    lay_out(root, shown.get("pack", {}))
    (root / "cases.yaml").write_text("")
    with (root / "pack.yaml").open("w") as file:
        YAML(typ="safe").dump(
            {
                "schema": "pack/v1",
                "slug": "shown",
                "version": 1,
                "prompt": "Go.",
                **({"judge": JUDGE_OF_PACK} if name == "judge" else {}),
                "cases": [{"id": "a", **shown.get("case", {})}],
                "scoring": {"validators": [shown["validator"]]},
            },
            file,
        )
    benchmark = opened(root)
    (task,) = benchmark.load_tasks()
    found = {}
    for key in ("passes", "fails"):
        work, answer = shown[key], None
        artifacts = {}
        steps: list[Step] = []
        if isinstance(work, str):
            answer = work
        elif isinstance(work, list):
            steps = [_call(**call) for call in work]
        else:
            lay_out(tmp_path / key, work)
            artifacts = {".": tmp_path / key}
        # What a real judge says of the texts is not ours to test: its verdict is given.
        verdict = says(verdict=key == "passes")
        context = JudgedContext(answer, verdict, steps=steps, artifacts=artifacts)
        found[key] = score(benchmark, task, context)
    assert found["passes"].metrics["score"] == 1, found["passes"].details
    assert found["fails"].metrics["score"] < 1
    assert found["fails"].details["reasons"]
    # No answer at all, as `nop` gives it, is scored too: nothing that is shown raises.
    nothing = JudgedContext(None, says(verdict=False), artifacts={})
    assert score(benchmark, task, nothing).metrics["score"] <= 1


def _call(name: str, arguments: Mapping[str, Any]) -> Step:
    return Step("agent", "", tool_calls=(ToolCall("", name, json.dumps(arguments)),))


def lay_out(folder: Path, files: Mapping[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
