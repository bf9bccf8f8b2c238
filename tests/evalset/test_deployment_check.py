"""`deployment check`: one call, one environment, and each fault by its own name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.config.errors import BadInput
from steelyard.evalset.agent_refs import resolve_agent
from steelyard.evalset.deployment_check import BY_STATUS, Check, check_deployment
from steelyard.evalset.project import read_project
from steelyard.testing.endpoint import MockEndpoint

pytestmark = pytest.mark.integration


def checked(folder: Path, model: dict[str, Any], **more: Any) -> Check:
    environ = more.pop("environ", {})
    chosen = more.pop("chosen", None)
    settings = more.pop("settings", {})
    deployment = {
        "name": "a", "harness": {"id": "chat"}, "model": {"id": "m", **model},
        "environment": {"id": "host_process"}, **more,
    }  # fmt: skip
    (folder / "steelyard.yaml").write_text(json.dumps({"deployments": [deployment], **settings}))
    project = read_project(environ=environ, cwd=folder)
    return check_deployment(resolve_agent("a", project.agents), project, model=chosen)


def test_what_works_is_called_once_and_counted(tmp_path: Path) -> None:
    with MockEndpoint("--text", "OK", "--require-key", "sk-right-key") as endpoint:
        model = {"base_url": endpoint.url, "api_key": "${KEY}"}
        found = checked(tmp_path, model, environ={"KEY": "sk-right-key"})
        assert endpoint.stats()["by_model"] == {"m": 1}
    assert found.passed
    assert [one.what for one in found.tried] == ["model", "environment"]
    assert found.usage["input_tokens"] > 0
    assert "trust host" in found.tried[1].message


def test_another_model_can_be_asked_as_a_set_would(tmp_path: Path) -> None:
    with MockEndpoint("--text", "OK") as endpoint:
        assert checked(tmp_path, {"base_url": endpoint.url}, chosen="other").passed
        assert endpoint.stats()["by_model"] == {"other": 1}


def test_a_price_that_is_not_known_is_no_fault_under_a_budget(tmp_path: Path) -> None:
    with MockEndpoint("--text", "OK") as endpoint:
        found = checked(tmp_path, {"base_url": endpoint.url}, settings={"budget": {"usd": 1}})
    assert found.passed
    assert found.usage["cost_usd"] is None


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("--require-key", "sk-right-key"), "auth"),
        (("--fault", "429"), "busy"),
        (("--fault", "500"), "unavailable"),
        (("--fault", "400"), "request"),
        (("--fault", "malformed_json"), "protocol"),
        (("--fault", "reset"), "connection"),
    ],
)
def test_faults_of_an_endpoint_are_told_apart_after_one_call(
    tmp_path: Path, arguments: tuple[str, ...], cause: str
) -> None:
    with MockEndpoint(*arguments) as endpoint:
        model = {"base_url": endpoint.url, "api_key": "sk-wrong-key-123"}
        found = checked(tmp_path, model)
    tried = found.tried[0]
    assert (tried.ok, tried.cause) == (False, cause)
    assert tried.remedy
    assert "sk-wrong-key-123" not in tried.message
    assert not found.passed
    assert found.tried[1].ok


def test_a_path_where_nothing_is_and_a_model_that_is_not_there_differ(tmp_path: Path) -> None:
    with MockEndpoint() as endpoint:
        found = checked(tmp_path, {"base_url": endpoint.url.removesuffix("/v1") + "/v2"})
        assert found.tried[0].cause == "address"
    with MockEndpoint("--fault", "404:message=the model m does not exist") as endpoint:
        found = checked(tmp_path, {"base_url": endpoint.url})
        assert found.tried[0].cause == "model_not_found"
        assert "model.id" in str(found.tried[0].remedy)


@pytest.mark.parametrize(
    ("url", "cause"),
    [("http://no-such-host.invalid/v1", "dns"), ("http://127.0.0.1:9/v1", "refused")],
)
def test_an_address_that_leads_nowhere_is_told_apart(tmp_path: Path, url: str, cause: str) -> None:
    tried = checked(tmp_path, {"base_url": url}).tried[0]
    assert tried.cause == cause
    assert "model.base_url" in str(tried.remedy)


def test_an_unset_key_is_named_and_nothing_is_tried(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="NOT_SET"):
        checked(tmp_path, {"base_url": "http://127.0.0.1:9/v1", "api_key": "${NOT_SET}"})


def test_who_calls_no_model_opens_an_environment_all_the_same(tmp_path: Path) -> None:
    found = checked(tmp_path, {"id": "none"}, harness={"id": "nop"})
    assert [one.ok for one in found.tried] == [None, True]
    assert found.passed


def test_every_status_with_words_of_its_own_has_a_remedy() -> None:
    assert all(BY_STATUS.values())
