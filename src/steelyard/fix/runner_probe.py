"""Try a runner's walls from the inside, once, before a trial is said to be held by them."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.environments.sandbox_probe import REFUSED, walls_that_gave
from steelyard.environments.tree_copy import remove_tree
from steelyard.fix.runner_values import OverlayRefused, RunnerFault, Stage
from steelyard.fix.sealed_tree import lay_out_files
from steelyard.fix.trial_plan import Limits
from steelyard.fix.trial_tree import make_tree

if TYPE_CHECKING:
    from steelyard.fix.local_runner import LocalRunner

_WAIT_S: Final = 60.0

PROGRAM: Final = r"""
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
found = {}

def attempt(name, action):
    try:
        action()
    except OSError as error:
        found[name] = errno.errorcode.get(error.errno, str(error.errno))
    else:
        found[name] = "done"

def call(name, *words):
    ctypes.set_errno(0)
    found[name] = errno.errorcode.get(ctypes.get_errno(), "?") if getattr(libc, words[0])(
        *words[1:]
    ) else "done"

with open("/proc/self/status") as file:
    status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
    found[name] = int(status[name].strip(), 16)
found["NoNewPrivs"] = status["NoNewPrivs"].strip()
found["Seccomp"] = status["Seccomp"].strip()
found["uid"] = os.getuid()
call("remount", "mount", b"none", b"/usr", None, 32 | 4096, None)
call("mount", "mount", b"none", b"/tmp", b"tmpfs", 0, None)
call("unshare", "unshare", 0x10000000)
attempt("write_usr", lambda: open("/usr/steelyard-probe", "w"))
attempt("write_root", lambda: open("/steelyard-probe", "w"))
attempt("write_run", lambda: open("/run/steelyard-probe", "w"))
attempt("write_sysctl", lambda: open("/proc/sys/kernel/hostname", "w"))
attempt("read_canary", lambda: open(sys.argv[1]))
attempt("read_shadow", lambda: open("/etc/shadow"))
found["first_process"] = open("/proc/1/comm").read().strip()
found["first_environment"] = len(open("/proc/1/environ", "rb").read().split(b"\0"))
with open("probe", "w") as file:
    file.write("")
with open("sealed", "a") as file:
    file.write("x")
print(json.dumps(found))
"""
_REFUSED: Final = REFUSED | {"ENOTDIR"}
_ATTEMPTS: Final = (
    *("remount", "mount", "unshare", "write_usr", "write_root", "write_run", "write_sysctl"),
    *("read_canary", "read_shadow"),
)


async def try_walls(runner: LocalRunner) -> bool:
    """Run the probe in a trial of its own; False where only the overlay cannot be had.

    Raises:
        RunnerFault: the walls are not tight, or the probe cannot be run.
    """
    folder = runner.base / f"probe-{secrets.token_hex(6)}"
    canary = runner.base / f"{folder.name}.canary"
    source = runner.base / f"{folder.name}.sealed"

    def make() -> Any:
        folder.mkdir(mode=0o711)
        folder.chmod(0o711)
        canary.write_bytes(b"")
        source.write_bytes(b"sealed\n")
        layer = lay_out_files(
            {"sealed": (source, False)}, folder.with_suffix(".layer"), owner=runner.owner
        )
        return make_tree(folder, "probe", [layer], runner.method, owner=runner.owner)

    try:
        tree = await asyncio.to_thread(make)
        python = Path(sys.base_prefix) / "bin" / "python3"
        stage = Stage(
            (str(python), "-I", "-S", "-c", PROGRAM, str(canary)),
            ".",
            {"PATH": runner.path},
            _WAIT_S,
            Limits(),
        )
        try:
            end = await runner.run(stage, tree, inputs=None, stop=asyncio.Event())
        except OverlayRefused:
            return False
        if end.exit_code != 0:
            said = end.stderr.decode("utf-8", "replace").strip()[-500:]
            raise RunnerFault(f"the walls cannot be tried ({end.exit_code}): {said}")
        weak = weaknesses(end.stdout)
        if await asyncio.to_thread((tree.layers[0].folder / "sealed").read_bytes) != b"sealed\n":
            weak.append("a sealed file was written to")
        if weak:
            raise RunnerFault("trials are not held on this machine: " + "; ".join(weak))
        return True
    finally:
        await asyncio.to_thread(_clear, folder, canary, source)


def _clear(folder: Path, *files: Path) -> None:
    remove_tree(folder)
    shutil.rmtree(folder.with_suffix(".layer"), ignore_errors=True)
    for file in files:
        file.unlink(missing_ok=True)


def weaknesses(output: bytes) -> list[str]:
    """Judge what the probe printed; empty where all is tight. Pure.

    Anything that cannot be read counts as a weakness.
    """
    try:
        return walls_that_gave(json.loads(output), _ATTEMPTS, _REFUSED)
    except (ValueError, KeyError, TypeError) as error:
        return [f"the probe said nothing that can be read ({type(error).__name__}: {error})"]
