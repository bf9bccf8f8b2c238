"""What of an endpoint's settings must never reach whoever is behind the gateway."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.config.secrets import SecretStore
from steelyard.models.gateway.cover import Secrets
from steelyard.models.settings import parse_settings

SECRET = "s3cret-value-of-16+"


@pytest.mark.parametrize(
    "fields",
    [
        {"api_key": {"$secret": "env:S"}},
        {"extra_headers": {"Authorization": f"Bearer {SECRET}"}},
        {"extra_headers": {"x-custom": {"$secret": "env:S"}}},
        {"base_url": "https://me:s3cret-value-of-16%2B@h.example/v1"},
        {"base_url": "https://h.example/v1?api_key=s3cret-value-of-16%2B"},
        {"params": {"deep": [{"token": {"$secret": "env:S"}}]}},
    ],
)
def test_a_secret_is_covered_wherever_it_was_written(fields: dict[str, Any]) -> None:
    known = parse_settings({"id": "m", **fields}, SecretStore({"S": SECRET}))
    covered = Secrets(known.secrets).covered(f"you sent {SECRET}!".encode())
    assert covered == b"you sent [redacted]!"
    assert SECRET not in repr(known)


@pytest.mark.parametrize(
    "fields",
    [
        {"extra_headers": {"x-team": "research"}},
        {"base_url": "https://h.example/v1?api-version=2024-10-21"},
        {"api_key": "EMPTY"},
    ],
)
def test_ordinary_words_are_not_covered(fields: dict[str, Any]) -> None:
    known = parse_settings({"id": "m", **fields}, SecretStore({}))
    text = b"research of 2024-10-21 is EMPTY"
    assert Secrets(known.secrets).covered(text) == text
