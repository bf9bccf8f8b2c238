"""References take up a whole field, are set, and become the field's type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steelyard.config.errors import BadInput
from steelyard.config.resolve import Resolution, resolve_orchestration
from steelyard.config.secrets import SecretRef

REQUEST = """
requests:
  - name: a
    benchmark: {id: b}
    harness: {id: h}
"""


def resolved(tmp_path: Path, text: str, environ: dict[str, str]) -> Resolution:
    (tmp_path / "o.yaml").write_text(text + REQUEST)
    return resolve_orchestration(Path("o.yaml"), environ=environ, cwd=tmp_path)


def refused(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(BadInput) as caught:
        resolved(tmp_path, text, environ or {})
    return [str(problem) for problem in caught.value.problems]


def test_values_are_parsed_as_the_fields_type(tmp_path: Path) -> None:
    text = """
task_concurrency: ${N}
runtime: {timeout_seconds: "${T}", auto_install_dependencies: "${OFF}"}
defaults:
  model: {id: "${ID}", max_connections: "${N}", params: {temperature: "${T}", tag: "${WORD}"}}
  harness: {max_turns: "${N}"}
"""
    environ = {"N": "3", "T": "0.5", "OFF": "false", "ID": "123", "WORD": "w"}
    found = resolved(tmp_path, text, environ).orchestration
    assert found.task_concurrency == 3
    assert found.runtime.timeout_seconds == 0.5
    assert found.runtime.auto_install_dependencies is False
    request = found.requests[0]
    assert request.model.id == "123"
    assert request.model.max_connections == 3
    assert request.model.params == {"temperature": 0.5, "tag": "w"}
    # A component's own types are known only to the component, which reads text too.
    assert request.harness.params == {"max_turns": "3"}


def test_a_value_of_another_type_is_refused_without_showing_it(tmp_path: Path) -> None:
    (problem,) = refused(
        tmp_path, "defaults: {model: {id: m}}\ntask_concurrency: ${N}", {"N": "many-secrets"}
    )
    assert problem == (
        "o.yaml:2:19 task_concurrency: found the value of ${N}\n  expected a whole number"
    )


def test_an_unset_variable_names_field_and_variable(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, "defaults: {model: {id: '${NOPE}'}}")
    assert problem.startswith("o.yaml:1:24 defaults.model.id: ${NOPE} is not set\n")
    assert "export NOPE" in problem


@pytest.mark.parametrize(
    "text", ["x${A}", "${A}x", "${A}${B}", "a ${A} b", "${}", "${A-b}", "${ A }"]
)
def test_a_partial_reference_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    (problem,) = refused(tmp_path, f"defaults: {{model: {{id: '{text}'}}}}", {"A": "a", "B": "b"})
    assert problem.startswith("o.yaml:1:24 defaults.model.id: ")
    assert "$${" in problem


def test_a_reference_as_a_key_is_refused(tmp_path: Path) -> None:
    problems = refused(
        tmp_path, "defaults: {model: {id: m, params: {'${A}': 1}}}", {"A": "temperature"}
    )
    assert any("a key cannot be a reference" in problem for problem in problems)


def test_a_doubled_dollar_writes_a_literal(tmp_path: Path) -> None:
    text = "defaults: {model: {id: '$${A}', params: {t: 'a$${b}$c'}}}"
    model = resolved(tmp_path, text, {}).orchestration.requests[0].model
    assert model.id == "${A}"
    assert model.params == {"t": "a${b}$c"}


@pytest.mark.parametrize("field", ["id", "base_url"])
def test_an_empty_variable_is_refused_for_what_a_model_needs(tmp_path: Path, field: str) -> None:
    other = "" if field == "id" else "id: m, "
    problems = refused(tmp_path, f"defaults: {{model: {{{other}{field}: '${{E}}'}}}}", {"E": ""})
    assert any(f"defaults.model.{field}: ${{E}} is empty" in problem for problem in problems)


def test_an_empty_key_is_a_warning(tmp_path: Path) -> None:
    text = "defaults: {model: {id: m, api_key: '${E}', extra_headers: {X-A: '${E}'}}}"
    found = resolved(tmp_path, text, {"E": ""})
    assert found.orchestration.requests[0].model.api_key is None
    assert [warning.message for warning in found.warnings] == ["${E} is empty"] * 2
    assert found.warnings[0].where.field == "defaults.model.api_key"


def test_secrets_become_references(tmp_path: Path) -> None:
    text = """
defaults:
  model:
    id: m
    base_url: https://user:hunter22@host/v1?sig=abcdefgh
    api_key: ${KEY}
    extra_headers: {X-Org: org-12345678}
    params: {max_tokens: 5, extra_headers: {A: b-12345678}, nested: {api_key: written-out-1}}
  harness: {auth: {user: someone-here, list: [deep-12345]}, password: 123456789, url: "http://h/p"}
"""
    found = resolved(tmp_path, text, {"KEY": "sk-12345678"})
    request = found.orchestration.requests[0]
    text_of_all = repr(found.orchestration)
    values: list[Any] = [
        "hunter22", "abcdefgh", "sk-12345678", "org-12345678", "b-12345678", "written-out-1",
        "someone-here", "deep-12345", "123456789",
    ]  # fmt: skip
    assert [value for value in values if value in text_of_all] == []
    assert request.model.api_key == SecretRef("env:KEY")
    assert isinstance(request.model.base_url, SecretRef)
    assert request.model.params["max_tokens"] == 5
    assert request.harness.params["url"] == "http://h/p"
    assert request.harness.params["password"] == SecretRef("config:defaults.harness.password")
    revealed = found.secrets.reveal_tree(request.harness.params)
    assert revealed["password"] == 123456789
    assert revealed["auth"] == {"user": "someone-here", "list": ["deep-12345"]}

    from steelyard.config.redaction import Redactor

    redactor = Redactor(found.secrets)
    assert all(value not in redactor.text(f"<{value}>") for value in values)


def test_short_secrets_are_named_in_a_warning(tmp_path: Path) -> None:
    text = "defaults: {model: {id: m, api_key: EMPTY}}"
    (warning,) = resolved(tmp_path, text, {}).warnings
    assert "too short or too common" in warning.message
    assert str(warning.where) == "o.yaml:1:36 defaults.model.api_key"
    assert "EMPTY" not in str(warning)


def test_variables_named_in_secret_env_are_secret(tmp_path: Path) -> None:
    text = "defaults: {model: {id: m}}\nruntime: {secret_env: [MINE, GONE, TINY]}"
    found = resolved(tmp_path, text, {"MINE": "my-own-secret", "TINY": "abc"})
    assert ("env:MINE", "my-own-secret") in list(found.secrets.items())
    gone, tiny = found.warnings
    assert "GONE, which is not set" in gone.message
    assert "TINY is too short" in tiny.message
