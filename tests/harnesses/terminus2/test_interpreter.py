"""Which interpreter has the package, and what is said where none has."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from pydantic import ValidationError

from steelyard.components.installed_agents import MANIFEST, installed_agents
from steelyard.harnesses.terminus2 import Terminus2, interpreter
from steelyard.harnesses.terminus2.params import VERSION

FINDS = 'case "$*" in *version_info*) echo {0} ;; *) exit 1 ;; esac'


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose only programs are those of a folder, with Python 3.11 as ours."""
    monkeypatch.setattr(interpreter.sys, "version_info", (3, 11, 7))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def harness(data_dir: Path, **params: object) -> Terminus2:
    made = Terminus2(Terminus2.Params.model_validate(params))
    made.data_dir = data_dir
    return made


def test_what_is_missing_is_named_with_the_command_and_the_python(bare: Path) -> None:
    said = harness(bare / "data").lacking()
    assert said is not None
    assert f"harbor {VERSION} is not installed" in said
    assert f"steelyard agent install terminus2 --data-dir {bare / 'data'}" in said
    assert "this Python is 3.11, the package needs 3.12" in said
    assert "uv python install 3.12" in said


def test_where_a_newer_python_is_there_none_is_asked_for(bare: Path) -> None:
    script(bare / "bin/python3.12", FINDS.format("3 12"))
    said = harness(bare / "data").lacking()
    assert said is not None
    assert "uv python install" not in said


def test_another_version_is_asked_for_by_its_number(bare: Path) -> None:
    said = harness(bare / "data", version="0.25.0").lacking()
    assert said is not None
    assert "harbor 0.25.0" in said
    assert "--version 0.25.0" in said


def test_pythons_are_looked_for_on_the_path_in_pyenv_and_by_uv(bare: Path) -> None:
    shim = script(bare / "bin/python3.12", "echo not found >&2; exit 127")
    old = script(bare / "bin/python3.13", FINDS.format("3 11"))
    pyenv = script(bare / "pyenv/versions/3.12.1/bin/python3.12", FINDS.format("3 12"))
    by_uv = script(bare / "elsewhere/python3.14", FINDS.format("3 14"))
    script(bare / "bin/uv", f"echo {by_uv}")
    found = list(interpreter.new_pythons())
    assert found == [pyenv, by_uv]
    assert shim not in found
    assert old not in found


def test_without_a_python_installing_says_so(bare: Path) -> None:
    home = interpreter.Home(VERSION, bare / "data")
    with pytest.raises(interpreter.NotInstalled, match=r"needs Python 3\.12") as caught:
        interpreter.install(home, timeout_s=5)
    assert "uv python install 3.12" in str(caught.value)


@pytest.mark.integration
def test_an_installer_that_fails_leaves_nothing_and_its_words_are_told(bare: Path) -> None:
    script(bare / "bin/python3.12", FINDS.format("3 12"))
    script(
        bare / "bin/uv",
        '[ "$1" = venv ] && exec /bin/mkdir -p "$5"; echo no such thing >&2; exit 4',
    )
    home = interpreter.Home(VERSION, bare / "data")
    with pytest.raises(interpreter.NotInstalled, match=r"exit status 4.*no such thing"):
        interpreter.install(home, timeout_s=5)
    assert not home.folder.exists()


@pytest.mark.integration
def test_what_was_installed_is_found_and_listed(bare: Path) -> None:
    script(bare / "bin/python3.12", FINDS.format("3 12"))
    makes = '/bin/mkdir -p "$5/bin"; : >"$5/bin/python"'
    script(bare / "bin/uv", f'case "$1" in venv) {makes} ;; *) echo "$@" >"{bare / "log"}" ;; esac')
    one = harness(bare / "data")
    installs = one.installation()
    assert installs is not None
    assert VERSION in installs()
    said = (bare / "log").read_text()
    assert "--require-hashes --no-deps" in said
    assert "--only-binary :all:" in said
    assert one.lacking() is None
    assert one.installation() is None
    (listed,) = installed_agents(bare / "data")
    assert (listed.id, listed.version) == ("terminus2", VERSION)
    assert json.loads((listed.folder / MANIFEST).read_text())["agent"] == "terminus2"


def test_an_interpreter_that_is_named_must_be_there(tmp_path: Path) -> None:
    one = harness(tmp_path, python=str(tmp_path / "python"))
    assert one.lacking() == f"python: there is no interpreter {tmp_path / 'python'}"
    assert one.installation() is None


def test_a_relative_interpreter_lies_beside_the_file_that_names_it(tmp_path: Path) -> None:
    given = {"python": "venv/bin/python"}
    params = Terminus2.Params.model_validate(given, context={"base_dir": tmp_path})
    assert params.model_dump()["python"] == tmp_path / "venv/bin/python"


@pytest.mark.parametrize("version", ["latest", ">=0.26", "0.26.0; x"])
def test_a_version_must_be_exact(version: str) -> None:
    with pytest.raises(ValidationError, match="no exact version"):
        Terminus2.Params.model_validate({"version": version})


def test_the_lock_pins_the_version_of_the_extra_and_names_no_host() -> None:
    text = interpreter.LOCK.read_text()
    assert f"\nharbor=={VERSION} " in text
    assert "://" not in text
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert f"harbor=={VERSION};" in project
