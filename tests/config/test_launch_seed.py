"""The example of the launch document: it parses, layers and redacts unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.components.known import REGISTRY
from steelyard.config.errors import BadInput
from steelyard.config.redaction import redact_tree
from steelyard.config.resolve import Resolution, resolve_orchestration
from steelyard.config.secrets import SecretRef

FILE = Path(__file__).parent / "files" / "terminal-evaluations.yaml"
ENVIRON = {
    "MODEL_NAME": "some-model",
    "MODEL_BASE_URL": "https://models.example/v1",
    "MODEL_API_KEY": "sk-0123456789",
}


def resolved(tmp_path: Path) -> Resolution:
    return resolve_orchestration(FILE, environ=ENVIRON, cwd=tmp_path)


def test_it_resolves_as_its_text_says(tmp_path: Path) -> None:
    found = resolved(tmp_path).orchestration
    assert found.task_concurrency == 16
    first, second = found.requests
    assert [request.name for request in found.requests] == ["tb2vrf", "tb21"]
    assert (first.execution.attempts.k, first.execution.attempts.strategy) == (3, "avg")
    assert (second.execution.attempts.k, second.execution.attempts.strategy) == (5, "pass")
    assert (first.environment.id, second.environment.id) == ("docker", "daytona")
    for request in found.requests:
        assert request.harness.params == {"max_turns": 300}
        assert request.model.id == "some-model"
        assert request.model.base_url == "https://models.example/v1"
        assert request.model.api_key == SecretRef("env:MODEL_API_KEY")
        assert request.model.api_protocol == "openai-chat"
        assert request.model.params == {"temperature": 1, "top_p": 0.95}


def test_it_is_shown_without_its_key(tmp_path: Path) -> None:
    shown = redact_tree(resolved(tmp_path).orchestration.model_dump())
    assert shown["requests"][0]["model"]["api_key"] == "${MODEL_API_KEY}"
    assert "sk-0123456789" not in str(shown)


def test_its_component_ids_are_unknown_for_now_each_with_its_line(tmp_path: Path) -> None:
    known = {kind: set(REGISTRY.known(kind)) for kind in ("benchmark", "harness", "environment")}
    written = [
        (21, "benchmark", "terminal_bench_2_verified"),
        (23, "harness", "terminus2"),
        (26, "environment", "docker"),
        (34, "benchmark", "terminal_bench_2_1"),
        (36, "harness", "terminus2"),
        (39, "environment", "daytona"),
    ]
    unknown = [(line, name) for line, kind, name in written if name not in known[kind]]
    with pytest.raises(BadInput) as caught:
        resolve_orchestration(FILE, environ=ENVIRON, cwd=tmp_path, components=REGISTRY)
    found = [(p.where.line, p.message.split("'")[1]) for p in caught.value.problems]
    assert found == unknown


def test_its_empty_exports_are_refused_but_for_the_key(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        resolve_orchestration(FILE, environ=dict.fromkeys(ENVIRON, ""), cwd=tmp_path)
    assert [str(problem.where.field) for problem in caught.value.problems] == [
        "defaults.model.id",
        "defaults.model.base_url",
    ]
