"""Proxies, certificates and keys: by name, and no value is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.doctor.finding import Finding, State
from steelyard.doctor.network import examine_certificates, examine_keys, examine_proxies

SECRET = "sk-canary-4f1c9a7b"


def _states(findings: object) -> list[State]:
    return [found.state for found in findings]  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", ["ftp://proxy:1", "http://", "http://host:0", "http://[::1"])
def test_a_proxy_that_is_no_address_is_broken(value: str) -> None:
    found = list(examine_proxies({"HTTPS_PROXY": value}))
    assert _states(found) == [State.BROKEN]
    assert value not in found[0].message


@pytest.mark.parametrize("value", ["http://proxy:3128", "proxy:3128", "socks5://127.0.0.1:1080"])
def test_a_proxy_is_named_without_its_value(value: str) -> None:
    (found,) = examine_proxies({"https_proxy": value})
    assert found.state is State.WORKS
    assert "https_proxy" in found.message
    assert "3128" not in found.message


def test_a_proxys_password_is_not_shown() -> None:
    for found in examine_proxies({"HTTP_PROXY": f"nonsense://user:{SECRET}@proxy"}):
        assert SECRET not in f"{found}"


def test_certificates_that_are_not_there_are_broken(tmp_path: Path) -> None:
    gone = {"SSL_CERT_FILE": str(tmp_path / "a.pem"), "SSL_CERT_DIR": str(tmp_path / "b")}
    assert _states(examine_certificates(gone)) == [State.BROKEN, State.BROKEN]
    (tmp_path / "a.pem").touch()
    there = {"SSL_CERT_FILE": str(tmp_path / "a.pem"), "SSL_CERT_DIR": str(tmp_path)}
    assert _states(examine_certificates(there)) == [State.WORKS]


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("", "empty"),
        (f"{SECRET}\n", "white space"),
        (f"'{SECRET}'", "quotes"),
    ],
)
def test_a_key_that_cannot_be_right_is_told_without_its_value(value: str, word: str) -> None:
    found: list[Finding] = list(examine_keys({"OPENAI_API_KEY": value}, {}))
    assert found[0].state is State.WARNING
    assert word in found[0].message
    assert SECRET not in f"{found}"
    asked = list(examine_keys({"MY_KEY": value}, {"MY_KEY": "steelyard.yaml:3"}))
    assert asked[0].state is State.BROKEN
    assert "steelyard.yaml:3" in asked[0].message


def test_a_key_that_settings_refer_to_must_be_set() -> None:
    (found,) = examine_keys({}, {"MY_KEY": "steelyard.yaml:3"})
    assert (found.state, "MY_KEY is not set" in found.message) == (State.BROKEN, True)


def test_keys_that_are_set_are_named_only() -> None:
    (found,) = examine_keys({"ANTHROPIC_API_KEY": SECRET}, {})
    assert found.message == "set: ANTHROPIC_API_KEY"
