"""`list`, `schema`, `config` and `--dry-run` say what they should, for people and programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from steelyard.cli.list import KIND_NAMES
from steelyard.cli.main import COMMANDS, cli
from steelyard.cli.schema import MEANINGS, SCHEMAS

Run = Callable[..., Any]


@pytest.mark.parametrize("name", sorted(KIND_NAMES))
def test_list_knows_singular_plural_and_env(steelyard: Run, name: str) -> None:
    ran = steelyard("list", name, "--json")
    assert ran.status == 0
    assert ran.json["kind"] == KIND_NAMES[name].value


def test_list_prints_a_table(steelyard: Run) -> None:
    lines = steelyard("list", "harnesses").out.splitlines()
    assert lines[0].split() == ["id", "aliases", "what", "from", "extra"]
    assert any(line.startswith("chat ") and "openai_chat" in line for line in lines)


def test_list_without_a_kind_shows_every_kind_that_has_anything(steelyard: Run) -> None:
    ran = steelyard("list")
    headings = [line for line in ran.out.splitlines() if line.endswith(":")]
    assert (ran.status, headings) == (
        0,
        ["benchmarks:", "harnesses:", "environments:", "analyzers:", "scanners:"],
    )
    assert "humaneval" in ran.out
    document = steelyard("list", "--json").json["components"]
    assert [one["id"] for one in document["harness"]] == [
        "chat", "command", "claude_code", "codex", "mini_swe_agent",
        "terminal_agent", "terminus2", "oracle", "nop",
    ]  # fmt: skip
    assert [one["id"] for one in document["scanner"]] == [
        "reward-hacking", "tool-misuse", "sandbox-escape-attempt",
        "instruction-injection-compliance",
    ]  # fmt: skip


def test_every_kind_is_offered(steelyard: Run) -> None:
    assert "scanners" in steelyard("list", "no-such-thing").err
    assert "sandbox-escape-attempt" in steelyard("list", "scanners").out


def test_config_pack_and_schema_alone_say_what_they_are_for(steelyard: Run) -> None:
    for group in ("config", "pack"):
        alone = steelyard(group)
        assert (alone.status, alone.out) == (0, steelyard(group, "--help").out)
    schema = steelyard("schema")
    assert schema.status == 0
    assert schema.out.splitlines()[0].startswith("formats with a JSON Schema")
    assert set(MEANINGS) == set(SCHEMAS)


def test_list_of_an_unknown_kind_offers_near_names(steelyard: Run) -> None:
    ran = steelyard("list", "benchmrks")
    assert (ran.status, "did you mean benchmarks?" in ran.err) == (2, True)


@pytest.mark.parametrize("name", ["orchestration", "config", "request", "resolved", "pack"])
def test_schemas_are_published(steelyard: Run, name: str) -> None:
    schema = steelyard("schema", name).json
    assert schema["type"] == "object"
    assert schema["properties"]


def test_an_unknown_schema_offers_near_names(steelyard: Run) -> None:
    ran = steelyard("schema", "orchestraton")
    assert (ran.status, "did you mean orchestration?" in ran.err) == (2, True)
    assert steelyard("schema", "--json").json["schemas"][0] == "orchestration"


def test_config_show_gives_each_value_with_its_layer(steelyard: Run, project: Path) -> None:
    (project / "steelyard.yaml").write_text(
        "execution:\n  limit: 3\nmodel: {api_key: sk-12345678, params: {temperature: 1}}\n"
    )
    settings = {one["key"]: one for one in steelyard("config", "show", "--json").json["settings"]}
    assert settings["execution.limit"] == {
        "key": "execution.limit", "value": 3, "layer": "project",
        "where": "steelyard.yaml:2:10 execution.limit",
    }  # fmt: skip
    assert settings["execution.task_concurrency"]["layer"] == "default"
    assert settings["model.params.temperature"]["value"] == 1
    assert settings["model.api_key"]["value"] == "[redacted]"
    table = steelyard("config", "show").out
    assert "sk-12345678" not in table
    assert "steelyard.yaml:2:10" in table


def test_config_show_of_an_orchestration_gives_its_layers(steelyard: Run, project: Path) -> None:
    (project / "o.yaml").write_text(
        "defaults: {model: {id: m, base_url: 'https://u:pw@h/v1?k=v'}}\n"
        "requests:\n  - {name: a, benchmark: {id: humaneval}, harness: {id: chat}}\n"
    )
    ran = steelyard("config", "show", "o.yaml", "--json")
    settings = {one["key"]: one for one in ran.json["settings"]}
    assert settings["requests[0].model.base_url"]["value"] == "https://h/v1?…"
    assert settings["requests[0].model.id"]["layer"] == "orchestration"


def test_config_docs_explains_every_key(steelyard: Run) -> None:
    ran = steelyard("config", "docs", "--json")
    keys = {one["key"]: one for one in ran.json["config"]}
    assert keys["execution.attempts.k"]["default"] == 1
    assert keys["runtime.timeout_seconds"]["default"] == 360_000
    assert all(one["meaning"] for part in ran.json.values() for one in part)
    assert "execution.attempts.k" in steelyard("config", "docs").out


def test_config_check_lists_every_problem(steelyard: Run, project: Path) -> None:
    assert "no configuration files" in steelyard("config", "check").out
    (project / "steelyard.yaml").write_text("execution: {limit: x}\nharnes: {}\n")
    ran = steelyard("config", "check")
    assert ran.status == 2
    assert "steelyard.yaml:1:20 execution.limit" in ran.err
    assert "did you mean harness?" in ran.err


def test_config_check_finds_what_launch_finds(steelyard: Run, project: Path) -> None:
    """Both speak of unknown fields of components and of packs, beside all else."""
    (project / "bad").mkdir()
    (project / "bad/pack.yaml").write_text("schema: pack/v1\n")
    request = (
        "{name: a, benchmark: {id: ./bad}, harness: {id: command, runs: [x]}, model: {id: none}}"
    )
    (project / "o.yaml").write_text(f"nonsense: 1\nrequests: [{request}]\n")
    checked, launched = steelyard("config", "check", "o.yaml"), steelyard("launch", "o.yaml")
    assert checked.status == launched.status == 2
    assert checked.err.split("\n")[:-2] == launched.err.split("\n")[:-2]
    for word in ("nonsense", "runs", "slug"):
        assert word in checked.err
    (project / "o.yaml").write_text(f"requests: [{request}]\n")
    checked = steelyard("config", "check", "o.yaml")
    assert checked.status == 2
    assert "requests[0].harness.runs" in checked.err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_json(steelyard: Run, name: str) -> None:
    assert steelyard(name, "--help").status == 0
    context = click.Context(click.Command("steelyard"))
    command = cli.get_command(context, name)
    assert command is not None
    leaves = [command]
    if isinstance(command, click.Group):
        found = [command.get_command(context, leaf) for leaf in command.list_commands(context)]
        leaves = [leaf for leaf in found if leaf is not None]
        assert len(leaves) == len(found)
    for leaf in leaves:
        assert any("--json" in option.opts for option in leaf.params), leaf.name


ORCHESTRATION = """
task_concurrency: 16
defaults:
  model:
    id: gpt
    base_url: https://user:hunter22@models.example:8443/v1
    api_key: ${DRY_KEY}
    extra_headers: {X-Org: org-12345678}
    params: {temperature: 1}
  environment: {id: host_process}
requests:
  - name: first
    benchmark: {id: humaneval}
    harness: {id: chat}
    execution: {attempts: {k: 3}, limit: 5, exclude_ids: [HumanEval/3]}
    runtime: {reuse: true}
"""


def test_a_dry_run_shows_what_would_run_and_no_secret(
    steelyard: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRY_KEY", "sk-12345678")
    (project / "o.yaml").write_text(ORCHESTRATION)
    text = steelyard("launch", "o.yaml", "--dry-run")
    document = steelyard("launch", "o.yaml", "--dry-run", "--json")
    assert str(project / "results") in text.out
    assert document.json["results_dir"] == str(project / "results")
    assert "tasks are not loaded by a dry run" in text.out
    assert (text.status, document.status) == (0, 0)
    for shown in (
        "humaneval", "chat", "host_process", "gpt (temperature=1)", "models.example:8443",
        "k 3, avg", "without HumanEval/3; at most 5", "the latest compatible run", "${DRY_KEY}",
        "16",
    ):  # fmt: skip
        assert shown in text.out
    for secret in ("hunter22", "sk-12345678", "org-12345678"):
        assert secret not in text.out + text.err + document.out + document.err
    assert document.json["hosts"] == {"first": "models.example:8443"}
    assert document.json["orchestration"]["task_concurrency"] == 16
    assert sorted(path.name for path in project.iterdir()) == [".git", "o.yaml"]


def test_a_dry_run_of_one_request_names_it(steelyard: Run) -> None:
    ran = steelyard("run", "humaneval", "nop", "none", "--env", "host_process", "--dry-run")
    assert ran.status == 0, ran.err
    assert "none_humaneval_nop" in ran.out


def test_a_dry_run_shows_what_auto_came_to_and_whether_a_task_stops_early(steelyard: Run) -> None:
    options = ("--dry-run", "--k", "3", "--attempt-strategy", "pass", "--early-stop")
    steelyard("pack", "init", "units")
    host = steelyard("run", "./units", "nop", "none", *options)
    assert host.status == 0, host.err
    assert "auto → host_process" in host.out
    assert "k 3, pass, early stop on" in host.out
    document = steelyard("run", "./units", "nop", "none", "--dry-run", "--json").json
    assert document["resolved"] == {
        "none_units_nop": {"environment": "host_process", "early_stop": False}
    }


def test_wrong_ids_paths_and_fields_of_a_file_come_together(steelyard: Run, project: Path) -> None:
    steelyard("pack", "init", "units")
    (project / "o.yaml").write_text(
        "defaults: {model: {id: m, base_url: 'http://h/v1'}}\n"
        "requests:\n"
        "  - {name: a, benchmark: {id: ./unit}, harness: {id: chatt}}\n"
        "  - {name: b, benchmark: {id: ./units}, harness: {id: ./no.py:X}, executon: {}}\n"
    )
    ran = steelyard("launch", "o.yaml", "--dry-run", "--json")
    said = [(one["file"], one["line"], one["message"]) for one in ran.json["error"]["problems"]]
    assert said == [
        ("o.yaml", 3, "there is no pack at ./unit"),
        ("o.yaml", 3, "unknown harness 'chatt'"),
        ("o.yaml", 4, "the harness './no.py:X': there is no file ./no.py"),
        ("o.yaml", 4, "unknown field 'executon'"),
    ]
    assert ran.json["error"]["problems"][0]["remedy"] == "did you mean ./units?"


def test_a_path_of_a_configuration_file_starts_from_its_folder(
    steelyard: Run, project: Path
) -> None:
    (project / "sub").mkdir()
    steelyard("pack", "init", "sub/units")
    (project / "sub" / "c.yaml").write_text("benchmark: {id: ./units}\n")
    (project / "o.yaml").write_text(
        "requests: [{name: a, harness: {id: nop}, model: {id: none}}]\n"
    )
    ran = steelyard("launch", "o.yaml", "--config", "sub/c.yaml", "--dry-run")
    assert ran.status == 0, ran.err


def test_pack_check_does_not_speak_of_creating(steelyard: Run, project: Path) -> None:
    steelyard("pack", "init", "units")
    pack = project / "units" / "pack.yaml"
    pack.write_text(pack.read_text() + "promt: x\n")
    cases = project / "units" / "cases.jsonl"
    cases.write_text(cases.read_text() + '{"id": "apples", "question": "?", "answer": 1}\n{\n')
    ran = steelyard("pack", "check", "units")
    assert ran.status == 2
    assert "unknown field 'promt'" in ran.err
    assert "cases.jsonl:5" in ran.err  # an unknown field hides nothing of the cases
    assert "created" not in ran.err
    assert "allowed: schema, slug" in ran.err
    assert "nothing was created" in steelyard("run", "./units", "nop", "none").err


def test_pack_check_of_a_wrong_path_offers_a_near_one_once(steelyard: Run) -> None:
    steelyard("pack", "init", "units")
    ran = steelyard("pack", "check", "unit")
    assert ran.err.count("there is no pack at unit") == 1
    assert "did you mean units?" in ran.err
