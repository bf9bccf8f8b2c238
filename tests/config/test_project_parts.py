"""`packs`, `deployments` and `judge` of configuration files: held against the schema, read late."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from steelyard.components.known import REGISTRY
from steelyard.config.errors import BadInput
from steelyard.config.project_parts import deployments
from steelyard.config.redaction import Redactor, redact_tree
from steelyard.config.resolution import ConfigResolution
from steelyard.config.resolve import resolve_config, resolve_run
from steelyard.config.source import plain

KEY = "sk-very-secret-12345"


def config(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> ConfigResolution:
    (folder / "steelyard.yaml").write_text(text)
    return resolve_config(environ=environ or {}, cwd=folder, components=REGISTRY)


def faults(folder: Path, text: str) -> dict[str | None, str]:
    with pytest.raises(BadInput) as raised:
        config(folder, text)
    return {one.where.field: f"{one.message}; {one.remedy}" for one in raised.value.problems}


def test_an_unset_variable_of_a_deployment_stops_nothing(tmp_path: Path) -> None:
    text = "deployments: [{name: a, harness: {id: chat}, model: {id: m, api_key: '${NOT_SET}', "
    text += "max_connections: '${NOR_THIS}'}}]\njudge: {model: {api_key: '${NOR_THAT}'}}"
    found = config(tmp_path, text)
    shown = redact_tree(plain(found.provenance.root))
    assert shown["deployments"][0]["model"]["api_key"] == "${NOT_SET}"
    assert resolve_run("humaneval", "nop", "none", environ={}, cwd=tmp_path).orchestration


def test_an_unset_variable_of_other_settings_still_does(tmp_path: Path) -> None:
    assert "model.api_key" in faults(tmp_path, "model: {api_key: '${NOT_SET}'}")


def test_secrets_are_sealed_and_known_to_the_redactor(tmp_path: Path) -> None:
    text = f"deployments: [{{name: a, model: {{api_key: {KEY}, extra_headers: {{X: {KEY}2}}}}}}]\n"
    text += "judge: {model: {api_key: '${JUDGE_KEY}'}}"
    found = config(tmp_path, text, {"JUDGE_KEY": "another-secret-777"})
    assert KEY not in repr(found.provenance.root.at(("deployments",)))
    hidden = Redactor(found.secrets).text(f"{KEY} {KEY}2 another-secret-777")
    assert KEY not in hidden
    assert "another-secret-777" not in hidden


def test_a_deployment_holds_what_a_request_holds_and_no_more(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        "deployments:\n"
        "  - {harness: {id: chat}}\n"
        "  - {name: b, benchmark: {id: humaneval}}\n"
        "  - {name: c, model: {temperature: 1}}\n"
        "  - {name: d, harness: {id: chatt}}\n"
        "  - {name: e, id: not-a-uuid}\n"
        "  - {name: '${NAME}'}\n"
        "  - {name: g, environment: {id: host_process, params: {x: 1}}}\n"
        "  - 7\n",
    )
    assert "name is missing" in found["deployments[0].name"]
    assert "unknown field 'benchmark'" in found["deployments[1].benchmark"]
    assert "model.params" in found["deployments[2].model.temperature"]
    assert "did you mean chat?" in found["deployments[3].harness.id"]
    assert "deployments[4].id" in found
    assert "cannot be a reference" in found["deployments[5].name"]
    assert "write x beside id" in found["deployments[6].environment.params"]
    assert "deployments[7]" in found
    assert len(found) == 8


def test_other_commands_refuse_a_malformed_deployment_too(tmp_path: Path) -> None:
    (tmp_path / "steelyard.yaml").write_text("deployments: [{nam: a}]")
    with pytest.raises(BadInput, match="did you mean name"):
        resolve_run("humaneval", "nop", "none", environ={}, cwd=tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "packs: x",
        "packs: [1]",
        "packs: ['']",
        "packs: ['${P}']",
        "judge: 1",
        "judge: {samples: 2}",
        "deployments: {}",
    ],
)
def test_what_is_no_such_part_is_refused(tmp_path: Path, text: str) -> None:
    field = text.partition(":")[0]
    assert all((name or "").startswith(field) for name in faults(tmp_path, text))


def test_files_add_up_and_a_name_belongs_to_the_highest(tmp_path: Path) -> None:
    (tmp_path / "steelyard.yaml").write_text(
        "packs: [a]\ndeployments: [{name: x, model: {id: low}}, {name: y}]\n"
        "judge: {model: {id: j}, samples: 3}"
    )
    (tmp_path / "more.yaml").write_text(
        "packs: [b]\ndeployments: [{name: x, model: {id: high}}, {name: z}]\njudge: {samples: 5}"
    )
    found = resolve_config(config_files=[Path("more.yaml")], environ={}, cwd=tmp_path)
    shown = plain(found.provenance.root)
    assert shown["packs"] == ["a", "b"]
    assert [one["name"] for one in shown["deployments"]] == ["y", "x", "z"]
    assert shown["deployments"][1]["model"]["id"] == "high"
    assert shown["judge"] == {"model": {"id": "j"}, "samples": 5}
    assert [str(node.value["name"].value) for _, node in deployments(found.parts)] == [
        "y", "x", "z",
    ]  # fmt: skip


def test_two_of_one_name_in_one_file_are_both_kept(tmp_path: Path) -> None:
    """Whoever names one of them is told of both; who names neither is not."""
    found = config(tmp_path, "deployments: [{name: x}, {name: x}]")
    assert len(list(deployments(found.parts))) == 2


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    first = plain(config(tmp_path, "model: {id: one}").provenance.root)
    again = plain(config(tmp_path, "model: {id: two}").provenance.root)
    assert (first["model"]["id"], again["model"]["id"]) == ("one", "two")


def test_what_is_read_once_is_not_changed_by_who_resolves_it(tmp_path: Path) -> None:
    text = "model: {id: '${MODEL}', params: {top_p: '${P}'}}\nharness: {id: ./mine.py:Agent}\n"
    text += "deployments: [{name: a, model: {params: {x: '${P}'}, max_connections: '${N}'}}]"
    (tmp_path / "steelyard.yaml").write_text(text)
    for number in ("1", "2"):
        environ = {"MODEL": f"m{number}", "P": f"0.{number}", "N": number}
        found = plain(resolve_config(environ=environ, cwd=tmp_path).provenance.root)
        assert found["model"] == {"id": f"m{number}", "params": {"top_p": float(f"0.{number}")}}
        assert found["harness"]["id"] == "./mine.py:Agent"
        (tmp_path / "sub").mkdir(exist_ok=True)
        (tmp_path / ".git").mkdir(exist_ok=True)
        resolve_run("humaneval", "./mine.py:Agent", "m", environ=environ, cwd=tmp_path / "sub")


def test_an_id_that_is_no_uuid_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "steelyard.yaml").write_text(
        "deployments: [{name: a, id: seven, harness: {id: nop}}]\n"
    )
    with pytest.raises(BadInput) as raised:
        resolve_config(environ={}, cwd=tmp_path)
    said = str(raised.value)
    assert "a UUID, as 123e4567-" in said
    assert "{8}" not in said
