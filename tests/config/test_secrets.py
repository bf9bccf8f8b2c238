"""References travel in place of secrets, whatever copies or writes the settings."""

from __future__ import annotations

import json

import pytest

from steelyard.config.schema.request import ModelSettings
from steelyard.config.secrets import SecretRef, SecretStore, SecretUnavailable, sealed_json

MODEL = ModelSettings(
    id="m",
    api_key=SecretRef("env:KEY"),
    params={"nested": [{"token": SecretRef("config:x")}]},
)


def test_a_dump_keeps_references_typed_fields_and_untyped_trees_alike() -> None:
    dumped = MODEL.model_dump()
    assert dumped["api_key"] == SecretRef("env:KEY")
    assert dumped["params"] == {"nested": [{"token": SecretRef("config:x")}]}
    sealed = sealed_json(dumped)
    assert sealed["api_key"] == {"$secret": "env:KEY"}
    assert sealed["params"] == {"nested": [{"token": {"$secret": "config:x"}}]}


def test_json_holds_their_marker() -> None:
    written = json.loads(MODEL.model_dump_json())
    assert written["api_key"] == {"$secret": "env:KEY"}
    assert written["params"]["nested"] == [{"token": {"$secret": "config:x"}}]


def test_a_store_reveals_what_it_holds_and_what_the_environment_holds() -> None:
    store = SecretStore({"KEY": "from-the-environment"})
    assert store.reveal(SecretRef("env:KEY")) == "from-the-environment"
    store.put("config:x", "12345", original=12345)
    tree = sealed_json({"a": SecretRef("env:KEY"), "b": [SecretRef("config:x")]})
    assert store.reveal_tree(tree) == {"a": "from-the-environment", "b": [12345]}


@pytest.mark.parametrize(("ref", "remedy"), [("env:NO", "export NO"), ("config:y", "NAME")])
def test_a_missing_secret_says_where_it_must_be_set(ref: str, remedy: str) -> None:
    with pytest.raises(SecretUnavailable, match=remedy):
        SecretStore({}).reveal(SecretRef(ref))
