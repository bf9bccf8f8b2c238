"""Every field of every file format refuses what it cannot take, with its place and its path.

The table is made by walking the schemas: a field that is added is tested.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from steelyard.config.errors import BadInput
from steelyard.config.reference import json_schema, settings_of
from steelyard.config.resolve import resolve_config, resolve_orchestration
from steelyard.config.schema.written import ComponentPart, ConfigFile, OrchestrationFile
from steelyard.config.source import FieldPath, path_text
from steelyard.config.validation import _options

Case = tuple[str, FieldPath, str]
"""Document, path, wrong value as YAML."""


def walk(model: type[BaseModel], path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Every field with its annotation; a list's items at index 0, a mapping's at key `some`."""
    for name, field in model.model_fields.items():
        here = (*path, name)
        yield here, field.annotation
        for option in _options(field.annotation):
            origin, args = get_origin(option), get_args(option)
            inner, below = option, here
            if origin is list:
                inner, below = args[0], (*here, 0)
            elif origin is dict:
                inner, below = args[1], (*here, "some")
            for one in _options(inner):
                if isinstance(one, type) and issubclass(one, BaseModel):
                    yield from walk(one, below)


def wrong_for(annotation: Any) -> str:
    takes_list = any(option is list or get_origin(option) is list
                     for option in _options(annotation))  # fmt: skip
    return "7" if takes_list else "[[]]"


DOCUMENTS: dict[str, type[BaseModel]] = {"orchestration": OrchestrationFile, "config": ConfigFile}
FIELDS: list[Case] = [
    (document, path, wrong_for(annotation))
    for document, model in DOCUMENTS.items()
    for path, annotation in walk(model)
]


def mappings() -> Iterator[tuple[str, FieldPath]]:
    for document, model in DOCUMENTS.items():
        yield document, ()
        for path, annotation in walk(model):
            for option in _options(annotation):
                inner = option
                below = path
                if get_origin(option) is list:
                    inner, below = get_args(option)[0], (*path, 0)
                elif get_origin(option) is dict:
                    inner, below = get_args(option)[1], (*path, "some")
                if isinstance(inner, type) and issubclass(inner, BaseModel):
                    yield document, below


def yaml_with(path: FieldPath, value: str) -> tuple[str, int, int]:
    """Write a document whose last line holds `value` at `path`; give its line and column too."""
    lines: list[str] = []
    indent = 0
    for index, step in enumerate(path):
        is_last = index == len(path) - 1
        if isinstance(step, int):
            continue
        lead = " " * indent
        if index and isinstance(path[index - 1], int):
            lead = " " * (indent - 2) + "- "
        lines.append(f"{lead}{step}:" + (f" {value}" if is_last else ""))
        indent += 2
        if index + 1 < len(path) and isinstance(path[index + 1], int):
            indent += 2
    return "\n".join(lines) + "\n", len(lines), len(lines[-1]) - len(value) + 1


def resolve(tmp_path: Path, document: str, file: Path) -> None:
    if document == "config":
        resolve_config(config_files=[file], environ={}, cwd=tmp_path)
    else:
        resolve_orchestration(file, environ={}, cwd=tmp_path)


def problems(tmp_path: Path, document: str, text: str) -> list[Any]:
    file = tmp_path / "f.yaml"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        resolve(tmp_path, document, file)
    assert caught.value.exit_status == 2
    return list(caught.value.problems)


@pytest.mark.parametrize(("document", "path", "wrong"), FIELDS)
def test_a_wrong_type_is_refused_with_place_and_path(
    tmp_path: Path, document: str, path: FieldPath, wrong: str
) -> None:
    text, line, column = yaml_with(path, wrong)
    found = problems(tmp_path, document, text)
    wanted = path_text(path)
    (problem,) = [one for one in found if one.where.line == line and one.where.column == column]
    assert problem.where.file == "f.yaml"
    assert problem.where.field == wanted
    assert problem.message == f"found {'7' if wrong == '7' else 'a list'}"
    assert problem.remedy
    assert problem.remedy.startswith("expected ")


@pytest.mark.parametrize(("document", "path"), list(mappings()))
def test_an_unknown_key_is_refused_with_place_and_nearest_names(
    tmp_path: Path, document: str, path: FieldPath
) -> None:
    if path and path[-1] in ("benchmark", "harness", "environment"):
        # A component's fields are its own; what no component may have is a wrapper.
        text, line, _ = yaml_with((*path, "params", "x"), "1")
        found = problems(tmp_path, document, text)
        (problem,) = [one for one in found if one.where.line == line - 1]
        assert "write x beside id" in problem.remedy
        assert problem.where.field == path_text((*path, "params"))
        return
    text, line, _ = yaml_with((*path, "zzz_unknown"), "1")
    found = problems(tmp_path, document, text)
    (problem,) = [one for one in found if one.where.line == line and "required" not in one.message]
    assert problem.where.field == path_text((*path, "zzz_unknown"))
    assert problem.where.column == text.splitlines()[-1].index("zzz") + 1
    assert problem.message == "unknown field 'zzz_unknown'"
    assert problem.remedy.startswith("allowed: ")


def test_the_table_holds_every_setting() -> None:
    for document, model in DOCUMENTS.items():
        walked = {
            path_text(path).replace("[0]", "[]").replace(".some", ".NAME")
            for name, path, _ in FIELDS
            if name == document
        }
        assert {setting.key for setting in settings_of(model)} <= walked
        leaves = {
            key for key in walked if not any(other.startswith((f"{key}.", f"{key}["))
                                             for other in walked)
        }  # fmt: skip
        assert leaves <= {setting.key for setting in settings_of(model)}


@pytest.mark.parametrize("model", DOCUMENTS.values())
def test_every_setting_has_a_meaning(model: type[BaseModel]) -> None:
    assert [setting.key for setting in settings_of(model) if not setting.meaning] == []


@pytest.mark.parametrize("model", [*DOCUMENTS.values(), ComponentPart])
def test_schemas_are_published_with_meanings(model: type[BaseModel]) -> None:
    schema = json_schema(model)
    json.dumps(schema)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert all(field.get("description") for field in schema["properties"].values())
