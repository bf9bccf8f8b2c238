"""Every setting with its type, default and meaning, generated from the schemas."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from steelyard.config.secrets import SecretRef


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """One setting."""

    key: str
    """As in `execution.attempts.k`; `NAME` stands for a key of the user's choice."""
    type: str
    default: Any
    """None both for null and for required fields."""
    is_required: bool
    meaning: str


def settings_of(model: type[BaseModel], prefix: str = "") -> Iterator[SettingDoc]:
    """Iterate over every setting of a schema, depth first, in its order."""
    meanings = field_meanings(model)
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        inner = _inner(field.annotation)
        if inner is None:
            yield _doc(key, field, meanings.get(name, ""))
            continue
        below, suffix = inner
        if get_origin(field.annotation) is not None and below is not field.annotation:
            yield _doc(key, field, meanings.get(name, ""))
        yield from settings_of(below, f"{key}{suffix}.")


def field_meanings(model: type[BaseModel]) -> dict[str, str]:
    """Give what stands under each field in the source, inherited ones too.

    Read when somebody asks: pydantic's `use_attribute_docstrings` would parse the source at every
    start.
    """
    meanings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base is not BaseModel and issubclass(base, BaseModel):
            meanings |= _meanings_in_source(base)
    return meanings


@cache
def _meanings_in_source(model: type[BaseModel]) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(model)))
    found = tree.body[0]
    if not isinstance(found, ast.ClassDef):
        return {}
    meanings = {}
    for field, below in pairwise(found.body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            meanings[field.target.id] = " ".join(below.value.value.split())
    return meanings


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Give a model's JSON Schema with every field's meaning in it."""
    schema: dict[str, Any] = model.model_json_schema()
    by_name = {one.__name__: one for one in _models(model)}
    for name, part in [(model.__name__, schema), *schema.get("$defs", {}).items()]:
        if name not in by_name:
            continue
        for field, meaning in field_meanings(by_name[name]).items():
            if field in part.get("properties", {}):
                part["properties"][field].setdefault("description", meaning)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        inner = _inner(field.annotation)
        if inner is not None and inner[0] is not model:
            yield from _models(inner[0])


def _doc(key: str, field: FieldInfo, meaning: str) -> SettingDoc:
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        default = default.model_dump()
    return SettingDoc(
        key,
        type_text(field.annotation),
        default,
        field.is_required(),
        meaning,
    )


def _inner(annotation: Any) -> tuple[type[BaseModel], str] | None:
    """Give the model inside an annotation, and what stands between the keys."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    origin = get_origin(annotation)
    args = get_args(annotation)
    if origin is Annotated:
        return _inner(args[0])
    if origin is list:
        inner = _inner(args[0])
        return (inner[0], "[]") if inner else None
    if origin is dict:
        inner = _inner(args[1])
        return (inner[0], ".NAME") if inner else None
    if origin in (Union, types.UnionType):
        return next((found for found in map(_inner, args) if found), None)
    return None


def type_text(annotation: Any) -> str:
    """Write a field's type as people say it."""
    if annotation is Any:
        return "any"
    if annotation is type(None):
        return "null"
    if annotation is SecretRef:
        return "secret text"
    names = {str: "text", int: "whole number", float: "number", bool: "true/false"}
    if annotation in names:
        return names[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_text(args[0])
    if origin is Literal:
        return " | ".join(str(arg) for arg in args)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_text(arg) for arg in args))
    if origin is list:
        return f"list of {type_text(args[0])}"
    if origin is dict:
        return f"mapping of {type_text(args[1])}"
    return "mapping"
