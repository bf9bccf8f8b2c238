"""What people write of an agent is judged before anything runs, each fault with its remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from steelyard.components.environment import ExecResult
from steelyard.components.registry import BUILTINS, Kind, find
from steelyard.config.schema.request import Request
from steelyard.harnesses.cli_agent.agent import Place
from steelyard.harnesses.cli_agent.agents import ClaudeCode, Codex, MiniSweAgent
from steelyard.harnesses.cli_agent.cache import DamagedInstall
from steelyard.harnesses.cli_agent.program import find_program, other_version, unstartable
from steelyard.harnesses.cli_agent.table import AGENTS, CLAUDE_CODE, CODEX
from steelyard.results.identity import base_of, generation_parts

PLACE = Place("/opt/steelyard/x", "/tmp/home", "/workspace", "{token} $(id)", "m", "http://g", "t")


def test_every_agent_of_the_table_is_a_harness_of_its_id() -> None:
    for agent_id, agent in AGENTS.items():
        harness = find(Kind.HARNESS, agent_id).component
        assert (harness.id, harness.agent) == (agent_id, agent)
        assert agent_id in BUILTINS[Kind.HARNESS]
        assert agent.protocols[0] in agent.title
        assert agent.protocols[0] in BUILTINS[Kind.HARNESS][agent_id].summary


@pytest.mark.parametrize(
    "version", ["latest", "^1.2.3", "1", "1.x", "1.2.3 || 2", "", "../1.2", "-1.0"]
)
def test_a_version_that_is_not_exact_is_refused(version: str) -> None:
    with pytest.raises(ValidationError, match="no exact version"):
        Codex.Params.model_validate({"version": version})


@pytest.mark.parametrize("version", ["1.2.3", "0.171.0", "2.0.0-beta.1", "1.2.3rc1"])
def test_exact_versions_are_taken(version: str) -> None:
    assert Codex.Params.model_validate({"version": version}).model_dump()["version"] == version


def test_turns_are_refused_where_the_program_has_no_bound_on_them() -> None:
    for harness in (ClaudeCode, MiniSweAgent):
        harness.Params.model_validate({"max_turns": 3})
    with pytest.raises(ValidationError, match="no bound on turns"):
        Codex.Params.model_validate({"max_turns": 3})


@pytest.mark.parametrize(
    "params", [{"env": {"A=B": "x"}}, {"env": {"": "x"}}, {"args": ["a\0"]}, {"max_turn": 1},
               {"timeout_seconds": 0}, {"install": "image"}],
)  # fmt: skip
def test_what_no_program_can_be_given_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ClaudeCode.Params.model_validate(params)


def identity(params: dict[str, Any]) -> bytes:
    request = Request.model_validate(
        {
            "name": "r",
            "benchmark": {"id": "b"},
            "harness": {"id": "codex", "params": params},
            "model": {"id": "m"},
        }
    )
    codex = Codex(Codex.Params.model_validate(params))
    filled = codex.generation_params(codex.params.model_dump(mode="json"))
    parts = generation_parts(request, harness_version=Codex.version, harness_params=filled)
    return base_of(parts)


def test_the_programs_version_is_in_the_generation_identity_written_or_not() -> None:
    assert identity({}) == identity({"version": CODEX.version})
    assert identity({}) != identity({"version": "0.170.0"})


def test_fields_are_filled_once_and_values_never() -> None:
    assert (
        PLACE.filled("{prompt} {model} {url} {{x}} {other}")
        == "{token} $(id) m http://g {{x}} {other}"
    )


def test_a_token_is_in_no_representation() -> None:
    assert "token" not in repr(Place("a", "h", "w", "p", "m", "u", "sesame-token"))


def test_settings_files_hold_hostile_model_names_as_text() -> None:
    import json
    import tomllib

    place = Place("a", "/h", "/w", "p", 'm"\n[x]\ny="', "http://g", "t")
    assert CODEX.files is not None
    settings = tomllib.loads(CODEX.files(place)[".codex/config.toml"])
    assert settings["model"] == place.model
    assert settings["web_search"] == "disabled"
    assert settings["model_providers"]["gateway"]["base_url"] == "http://g/v1"
    assert CLAUDE_CODE.files is not None
    denied = json.loads(CLAUDE_CODE.files(place)[".claude/settings.json"])
    assert denied["permissions"]["deny"] == ["WebSearch", "WebFetch"]


def test_a_program_is_found_where_exactly_one_fits(tmp_path: Path) -> None:
    with pytest.raises(DamagedInstall, match="holds no programs"):
        find_program(CLAUDE_CODE, tmp_path, PLACE)
    for kind in ("linux-x64", "linux-x64-musl"):
        program = tmp_path / f"node_modules/@anthropic-ai/claude-code-{kind}/claude"
        program.parent.mkdir(parents=True)
        program.touch()
        if kind == "linux-x64":
            found = find_program(CLAUDE_CODE, tmp_path, PLACE)
            assert found == (
                "/opt/steelyard/x/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
            )
    with pytest.raises(DamagedInstall, match="holds 2 programs"):
        find_program(CLAUDE_CODE, tmp_path, PLACE)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (ExecResult(0, b"codex-cli 0.171.0\n", b""), None),
        (ExecResult(0, b"codex-cli 0.170.0\n", b""), "write `version: 0.170.0`"),
        (ExecResult(0, b"codex-cli 0.171.01\n", b""), "is 0.171.01"),
        (ExecResult(0, b"hello\n", b""), "says no version"),
        (ExecResult(127, b"", b"sh: codex: not found"), "has no program codex"),
        (ExecResult(1, b"", b"broken"), "cannot say its version (broken)"),
        (ExecResult(-9, b"0.171.0", b"", timed_out=True), "cannot say its version"),
    ],
)
def test_the_environments_own_program_is_judged_by_its_version(
    said: ExecResult, why: str | None
) -> None:
    found = other_version(CODEX, "0.171.0", said)
    assert (found is None) is (why is None)
    assert (why or "") in (found or "")


def test_a_program_that_cannot_be_started_is_told_from_one_that_failed() -> None:
    assert "glibc" in str(unstartable(CODEX, ExecResult(127, b"", b"not found"), in_image=False))
    assert "install: cache" in str(unstartable(CODEX, ExecResult(126, b"", b""), in_image=True))
    assert unstartable(CODEX, ExecResult(127, b"{}", b""), in_image=False) is None
    assert unstartable(CODEX, ExecResult(1, b"", b"x"), in_image=False) is None
