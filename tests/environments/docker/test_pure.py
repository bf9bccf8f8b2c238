"""The parts that need no engine: finding one, limits, the filter, the probe's verdict, streams."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from steelyard.components.environment import OpenRequest, Resources
from steelyard.environments.docker import finding, probe
from steelyard.environments.docker.builds import _bases
from steelyard.environments.docker.limits import host_config, limits_of, start_remedy
from steelyard.environments.docker.params import DockerParams
from steelyard.environments.docker.programs import Output, Program, check_words
from steelyard.environments.docker.seccomp_profile import profile

TIGHT: dict[str, Any] = {
    **dict.fromkeys(("CapEff", "CapPrm", "CapBnd"), 0x4FB),
    **dict.fromkeys(("CapInh", "CapAmb"), 0),
    **dict.fromkeys(probe._ATTEMPTS, "EPERM"),
    **dict.fromkeys(("vsock", "packet", "alg"), "EAFNOSUPPORT"),
    "NoNewPrivs": "1", "Seccomp": "2", "interfaces": ["lo"], "processes": 4, "pids_limit": "512",
}  # fmt: skip


@pytest.mark.parametrize(("number", "name"), [(6, "nproc"), (7, "nofile"), (99, "NAME")])
def test_an_engine_that_may_not_raise_a_limit_is_told_from_other_refusals(
    number: int, name: str
) -> None:
    said = start_remedy(f"runc: error setting rlimit type {number}: operation not permitted")
    assert said is not None
    assert f'default_ulimits = ["{name}=N:N"]' in said
    assert start_remedy("runc: exec: no such file") is None


def test_what_is_no_hosts_name_is_refused_where_settings_are_read() -> None:
    assert DockerParams(allowed_hosts=("a.example", "*.b.example")).allowed_hosts
    with pytest.raises(ValidationError, match="is no name of a host"):
        DockerParams(allowed_hosts=("https://a.example/x",))


def test_a_tight_container_has_no_weakness() -> None:
    assert probe.weaknesses(json.dumps(TIGHT).encode(), network_open=False) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CapEff", 0x4FB | 1 << 21), ("CapBnd", 1 << 13), ("CapAmb", 1 << 12), ("NoNewPrivs", "0"),
        ("Seccomp", "0"), ("mount", "done"), ("unshare", "done"), ("device", "done"),
        ("vsock", "done"), ("vsock", "EPERM"), ("alg", "done"), ("interfaces", ["eth0", "lo"]),
        ("processes", 200), ("pids_limit", "max"), ("write_sysctl", "done"), ("raw", "done"),
    ],
)  # fmt: skip
def test_each_door_that_is_open_is_a_weakness(name: str, value: object) -> None:
    assert probe.weaknesses(json.dumps({**TIGHT, name: value}).encode(), network_open=False)


@pytest.mark.parametrize("said", [b"", b"{}", b"[]", b"null", b"\xff"])
def test_a_probe_that_says_nothing_is_a_weakness(said: bytes) -> None:
    assert probe.weaknesses(said, network_open=False)


def test_the_filter_refuses_every_family_but_four() -> None:
    rules = [rule for rule in profile()["syscalls"] if "socket" in rule["names"]]
    refused = {rule["args"][0]["value"] for rule in rules if rule["args"][0]["op"] != "SCMP_CMP_GT"}
    (beyond,) = [r["args"][0]["value"] for r in rules if r["args"][0]["op"] == "SCMP_CMP_GT"]
    kept = {family for family in range(beyond + 1) if family not in refused}
    assert kept == {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}


def test_what_the_user_set_wins_over_what_the_task_asks() -> None:
    request = OpenRequest("t", Resources(cpu=2, memory_mb=64), network="open", allowed_hosts=("a",))
    limits = limits_of(DockerParams(memory_mb=128, network="none", allowed_hosts=("b",)), request)
    assert (limits.cpu, limits.memory_mb, limits.network) == (2, 128, "none")
    assert limits.allowed_hosts == ("a", "b")
    config = host_config(
        limits, mounts=[], security=[], extra_capabilities=(), open_network=None,
        holds_storage=False,
    )  # fmt: skip
    assert (config["NanoCpus"], config["Memory"]) == (2_000_000_000, 128 * 1024 * 1024)
    assert config["Memory"] == config["MemorySwap"], "swap would double it"
    assert (config["NetworkMode"], config["CapDrop"]) == ("none", ["ALL"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(finding, "socket_paths", lambda _v, _u: [tmp_path / "a", tmp_path / "b"])
    return tmp_path


def test_no_engine_at_all_names_what_to_install(folder: Path) -> None:
    said = finding.find_engine(None, {}).said()
    assert said is not None
    assert "no container engine was found" in said
    assert "apt-get install podman" in said


def test_a_socket_that_answers_is_found_behind_one_that_does_not(folder: Path) -> None:
    (folder / "a").write_text("")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "b"))
        listening.listen()
        assert finding.find_engine(None, {}).host == f"unix://{folder / 'b'}"


def test_a_socket_nobody_listens_on_says_how_to_start_the_engine(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / "a"))
    said = finding.find_engine(None, {}).said()
    assert said is not None
    assert f"no engine answers at {folder / 'a'}; start one: `systemctl" in said


def test_a_refused_socket_names_the_group(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: socket.socket, _address: str) -> None:
        raise PermissionError(13, "Permission denied")

    (folder / "a").write_text("")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    said = finding.find_engine(None, {}).said()
    assert said is not None
    assert "no permission" in said
    assert "usermod -aG docker" in said


@pytest.mark.parametrize(
    ("variables", "host", "said"),
    [
        ({"DOCKER_HOST": "unix:///no/such"}, None, "DOCKER_HOST names /no/such, which does not"),
        ({}, "unix:///no/such", "environment.host names /no/such"),
        ({"DOCKER_HOST": "ssh://me@there"}, None, "no address of an engine"),
        ({}, "nonsense", "'nonsense', which is no address"),
    ],
)
def test_an_address_that_is_wrong_is_named_with_its_origin(
    variables: dict[str, str], host: str | None, said: str
) -> None:
    assert said in (finding.find_engine(host, variables).said() or "")


def test_the_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding.importlib.util, "find_spec", lambda _name: None)
    assert "docker.txt" in (finding.unavailable() or "")


@given(st.lists(st.binary(max_size=50), max_size=20), st.binary(max_size=20), st.integers(0, 60))
def test_a_stream_is_cut_at_its_mark_however_it_arrives(
    pieces: list[bytes], after: bytes, room: int
) -> None:
    mark = b"\x1e" + b"f" * 32 + b"\x1e"
    sent = b"".join(pieces).replace(b"\x1e", b"")
    output = Output(mark, room)
    whole = sent + mark + after
    for start in range(0, len(whole), 7):
        output.feed(whole[start : start + 7])
    assert bytes(output.kept) == sent[:room]
    assert output.truncated == (len(sent) > room)
    assert output.trailer is not None
    assert bytes(output.trailer) == after


def test_a_stream_without_a_mark_is_kept_whole() -> None:
    output = Output(b"\x1eabc\x1e", 100)
    output.feed(b"almost \x1eabc")
    output.end()
    assert bytes(output.kept) == b"almost \x1eabc"
    assert output.trailer is None


@pytest.mark.parametrize(
    "program",
    [
        Program([], {}, "/"),
        Program(["a\0b"], {}, "/"),
        Program(["\ud800"], {}, "/"),
        Program(["x" * 200_000], {}, "/"),
        Program(["x"] * 300_000, {}, "/"),
        Program(["x"], {"A=B": "c"}, "/"),
        Program(["x"], {"": "c"}, "/"),
    ],
)
def test_words_that_no_program_can_be_given_are_refused(program: Program) -> None:
    with pytest.raises(ValueError, match=r"NUL|UTF-8|too long|name of a variable|no program"):
        check_words(program)


def test_the_images_a_dockerfile_stands_on_are_read_from_it() -> None:
    text = (
        "ARG V=1\n# FROM nothing\nFROM --platform=linux/amd64 one:1 AS base\nfrom base\n"
        "FROM two@sha256:0\nFROM scratch\nFROM three:${V}\n"
    )
    assert list(_bases(text)) == ["one:1", "two@sha256:0"]
