"""Two images made without a registry: busybox in a second, Debian by debootstrap once a machine.

Both are tar files in the user's cache folder, named by what they are made of; one maker at a time,
whatever runs side by side. `python -m tests.containers.images` makes them beforehand.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import platformdirs

BUSYBOX: Final = "localhost/steelyard-test-busybox:1"
"""A shell, the small tools, no Python."""
DEBIAN: Final = "localhost/steelyard-test-debian:1"
"""bash, Python 3, git, tmux, ps; user `agent` (uid 1000) beside root."""

_PACKAGES: Final = ("ca-certificates", "git", "procps", "python3", "tmux")
_DROPPED: Final = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man",
                   "usr/share/locale", "usr/share/info", "var/log")  # fmt: skip
_DEBOOTSTRAP_S: Final = 900


def cache_folder() -> Path:
    """Where the tar files lie; `STEELYARD_TEST_CACHE` names another place."""
    named = os.environ.get("STEELYARD_TEST_CACHE")
    folder = Path(named) if named else Path(platformdirs.user_cache_dir("steelyard-tests"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def busybox_tar() -> Path:
    """Give the tar of the busybox image, made where it is not there yet."""
    return _cached("busybox", Path(__file__).read_bytes(), _make_busybox)


def debian_tar() -> Path:
    """Give the tar of the Debian image; the first call on a machine takes a minute or two."""
    site, codename = apt_mirror()
    words = repr((_PACKAGES, _DROPPED, site, codename, 2)).encode()
    return _cached("debian", words, lambda tar: _make_debian(tar, site, codename))


def apt_mirror() -> tuple[str, str]:
    """Give the mirror that apt uses for this system's own release, and the release's name."""
    release = dict(
        line.split("=", 1)
        for line in Path("/etc/os-release").read_text().splitlines()
        if "=" in line
    )
    codename = release["VERSION_CODENAME"].strip('"')
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(SITE)"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for line in listed.splitlines():
        named, component, site = line.split(" ", 2)
        if (named, component) == (codename, "main"):
            return site.rstrip("/"), codename
    raise AssertionError(f"apt has no source for {codename} main; the Debian image needs one")


def _cached(name: str, made_of: bytes, make: Callable[[Path], None]) -> Path:
    folder = cache_folder()
    tar = folder / f"{name}-{hashlib.sha256(made_of).hexdigest()[:16]}.tar"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tar.exists():
            for old in folder.glob(f"{name}-*.tar*"):
                old.unlink()
            unfinished = tar.with_suffix(".tar.part")
            make(unfinished)
            unfinished.rename(tar)
    return tar


def _make_busybox(tar: Path) -> None:
    program = Path(shutil.which("busybox") or "/bin/busybox").resolve()
    applets = subprocess.run(
        [program, "--list"], capture_output=True, text=True, check=True
    ).stdout.split()
    with tarfile.open(tar, "w") as archive:
        for folder in ("bin", "etc", "root", "proc", "sys", "dev"):
            archive.addfile(_entry(folder, tarfile.DIRTYPE, 0o755))
        archive.addfile(_entry("tmp", tarfile.DIRTYPE, 0o1777))
        data = program.read_bytes()
        entry = _entry("bin/busybox", tarfile.REGTYPE, 0o755)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
        for applet in sorted(set(applets) - {"busybox"}):
            link = _entry(f"bin/{applet}", tarfile.SYMTYPE, 0o777)
            link.linkname = "busybox"
            archive.addfile(link)
        for name, text in {"passwd": "root:x:0:0::/root:/bin/sh\n", "group": "root:x:0:\n"}.items():
            entry = _entry(f"etc/{name}", tarfile.REGTYPE, 0o644)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    return entry


def _make_debian(tar: Path, site: str, codename: str) -> None:
    assert os.geteuid() == 0, (
        "the Debian image is made by debootstrap, which needs root; make it once with: "
        "sudo STEELYARD_TEST_CACHE=FOLDER python -m tests.containers.images"
    )
    with _scratch(tar.parent) as root:
        made = subprocess.run(
            [_debootstrap(), "--variant=minbase", f"--include={','.join(_PACKAGES)}",
             codename, str(root), site],
            capture_output=True, text=True, timeout=_DEBOOTSTRAP_S, check=False,
            env={**os.environ, **_proxies()}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert made.returncode == 0, f"debootstrap failed:\n{made.stdout[-2000:]}{made.stderr}"
        for dropped in _DROPPED:
            shutil.rmtree(root / dropped, ignore_errors=True)
        (root / "var/log").mkdir()
        # apt's own folders must be there for a task that installs something.
        (root / "var/lib/apt/lists/partial").mkdir(parents=True)
        (root / "var/cache/apt/archives/partial").mkdir(parents=True)
        for name, line in {"passwd": "agent:x:1000:1000::/home/agent:/bin/bash\n",
                           "group": "agent:x:1000:\n"}.items():  # fmt: skip
            with (root / "etc" / name).open("a") as file:
                file.write(line)
        (root / "home/agent").mkdir(mode=0o755)
        os.chown(root / "home/agent", 1000, 1000)
        subprocess.run(
            ["tar", "-C", str(root), "--numeric-owner", "-cf", str(tar), "."], check=True
        )


def _debootstrap() -> str:
    found = shutil.which("debootstrap")
    assert found, "debootstrap is missing: apt-get install debootstrap"
    return found


def _proxies() -> dict[str, str]:
    """Give the proxy that apt uses as debootstrap's downloader understands it."""
    said = subprocess.run(
        ["apt-config", "shell", "PROXY", "Acquire::http::Proxy"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    _, _, value = said.strip().partition("=")
    return {"http_proxy": value.strip("'")} if value.strip("'") else {}


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="debootstrap-", dir=folder))
    root.chmod(0o755)  # it becomes the image's root folder
    try:
        yield root
    finally:
        # debootstrap leaves nothing mounted where it has succeeded; where it was cut off it may.
        for point in ("proc", "sys"):
            subprocess.run(["umount", "-l", str(root / point)], capture_output=True, check=False)
        shutil.rmtree(root)


if __name__ == "__main__":
    for made in (busybox_tar(), debian_tar()):
        sys.stdout.write(f"{made}\n")
