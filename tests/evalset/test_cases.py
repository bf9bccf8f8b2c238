"""The cases that came with the contract: manifests, and what expanding them must give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.config.errors import BadInput
from steelyard.evalset.expansion import expand
from steelyard.evalset.manifest import read_manifest

CASES = json.loads(
    (Path(__file__).parent.parent / "fixtures" / "evalset" / "cases.json").read_text()
)["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_a_case_of_the_contract_expands_as_it_says(
    case: dict[str, Any], suffix: str, tmp_path: Path
) -> None:
    file = tmp_path / f"set.{suffix}"
    file.write_text(json.dumps(case["manifest"]))  # JSON is YAML, too
    expected = dict(case["expect"])
    if mentions := expected.pop("error_mentions", None):
        with pytest.raises(BadInput) as raised:
            expanded(file, case)
        assert [text for text in mentions if text.lower() not in str(raised.value).lower()] == []
        return
    document = expanded(file, case)
    keys = [cell["matrix_key"] for cell in document["combinations"]]
    found = {
        **document,
        "keys": keys,
        "first": keys[0],
        "last": keys[-1],
        "seeds": [cell["seed"] for cell in document["combinations"]],
    }
    assert {name: found[name] for name in expected} == expected


def expanded(file: Path, case: dict[str, Any]) -> dict[str, Any]:
    read = read_manifest(file)
    return expand(read, max_combinations=case.get("max_combinations")).as_json()
