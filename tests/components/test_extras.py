"""Optional dependencies: the exact command, and an installation held to the lock."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from steelyard.components.extras import LOCKS, NotInstalled, install_argv, install_command
from steelyard.components.extras import install_locked as installed
from steelyard.components.registry import BUILTINS, Kind

ROOT = Path(__file__).parents[2]


def test_the_command_is_that_of_how_it_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert install_argv("x")[:4] == ["uv", "pip", "install", "--python"]
    lib = tmp_path / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    (lib / "pip").mkdir(parents=True)
    assert install_argv("x")[:4] == [sys.executable, "-m", "pip", "install"]
    assert install_argv("x")[-2:] == ["-r", str(LOCKS / "x.txt")]


def test_every_extra_has_its_part_of_the_lock_hash_for_hash() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock = (ROOT / "requirements.lock").read_text()
    for extra in extras["optional-dependencies"]:
        text = (LOCKS / f"{extra}.txt").read_text()
        blocks = [b for b in re.split(r"(?m)^(?=[A-Za-z0-9])", text) if "==" in b]
        assert blocks, extra
        for block in blocks:
            first, _, hashes = block.partition("\n")
            assert re.search(rf"(?m)^{re.escape(re.split('[ ;]', first)[0])}[ ;]", lock), first
            assert hashes.strip() in lock, first
        assert all("--hash=sha256:" in block for block in blocks), extra
    named = {entry.extra for kind in Kind for entry in BUILTINS[kind].values() if entry.extra}
    assert named <= set(extras["optional-dependencies"])


def _wheel(folder: Path, name: str, version: str) -> str:
    """Write a wheel of one empty module; give its SHA-256."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{path},sha256={digest.decode()},{len(text)}\n"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh environment with pip, a folder of wheels instead of an index, and a lock."""
    venv.create(tmp_path / "venv", with_pip=True)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    old, digest = _wheel(wheels, "steelyard_demo", "2.0"), _wheel(wheels, "steelyard_demo", "1.5")
    assert old != digest
    locks = tmp_path / "locks"
    locks.mkdir()
    (locks / "demo.txt").write_text(f"steelyard-demo==1.5 \\\n    --hash=sha256:{digest}\n")
    (locks / "forged.txt").write_text(f"steelyard-demo==1.5 \\\n    --hash=sha256:{old}\n")
    for name in [n for n in os.environ if n.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/bin/python"))
    return tmp_path


def _version(machine: Path) -> str:
    code = "from importlib.metadata import version; print(version('steelyard_demo'))"
    done = subprocess.run(
        [machine / "venv/bin/python", "-c", code], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


@pytest.mark.integration
def test_exactly_the_locked_version_is_installed_and_said(machine: Path) -> None:
    said = installed("demo", locks=machine / "locks")
    assert "steelyard-demo==1.5" in said
    assert "--require-hashes" in said
    assert _version(machine) == "1.5"


@pytest.mark.integration
def test_a_package_with_another_hash_is_not_installed(machine: Path) -> None:
    with pytest.raises(NotInstalled, match="could not be installed") as caught:
        installed("forged", locks=machine / "locks")
    assert caught.value.problems[0].remedy == install_command("forged")
    assert _version(machine) == ""


@pytest.mark.parametrize("extra", ["unknown", "../demo", "", "demo.txt"])
def test_only_extras_of_ours_are_installed(extra: str, tmp_path: Path) -> None:
    (tmp_path / "demo.txt").write_text("")
    with pytest.raises(NotInstalled, match="no locked dependencies"):
        installed(extra, locks=tmp_path)
