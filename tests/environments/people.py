"""Start the product's Python as an ordinary user, or where user namespaces are off."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from steelyard.environments.mount_view import MountView, first_closed

NOBODY = 65534
SOURCE = Path(__file__).parents[2]


@contextmanager
def ordinary_user() -> Iterator[tuple[list[str], Mapping[str, str]]]:
    """Give the words before, and the variables of, a program that runs as an ordinary user.

    Tests of root start it as nobody with a fresh HOME. Where the interpreter lies below a folder
    that only root may enter, it is shown to nobody at the same path in a private mount namespace.
    Tests of an ordinary user start it as they are.
    """
    home = Path(tempfile.mkdtemp(dir="/tmp"))
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if os.geteuid() != 0:
        yield [], variables
        shutil.rmtree(home)
        return
    for folder in (SOURCE / "src", Path(sys.prefix)):
        assert first_closed(folder) is None, (
            f"an ordinary user cannot read {folder}: check out where every user can"
        )
    setpriv = shutil.which("setpriv")
    assert setpriv, "setpriv is missing: apt-get install util-linux"
    os.chown(home, NOBODY, NOBODY)
    view = None
    prefix: list[str] = []
    if first_closed(Path(sys.base_prefix)):
        view = MountView([Path(sys.base_prefix)])
        prefix = view.prefix()
    ids = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
    try:
        yield [*prefix, setpriv, *ids, "--bounding-set=-all", "--"], variables
    finally:
        if view is not None:
            view.close()
        shutil.rmtree(home)


def without_namespaces() -> list[str]:
    """Give the words before a program that may make no user namespace; changes nothing here."""
    unshare = shutil.which("unshare")
    assert unshare, "unshare is missing: apt-get install util-linux"
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    return [unshare, "-Ur", "sh", "-c", script, "sh"]


def run_python(
    arguments: Sequence[str], *, prefix: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the Python that runs these tests."""
    return subprocess.run(
        [*prefix, sys.executable, *arguments],
        env={**(os.environ if env is None else env), "PYTHONPATH": str(SOURCE / "src")},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
