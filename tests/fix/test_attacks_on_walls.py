"""What a candidate may reach for outside its trial: shown within reach, then out of it.

Rows that need namespaces say `host` where there are none, and promise nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steelyard.components.values import Trust
from steelyard.fix.trial import Outcome, run_trial
from steelyard.fix.trial_tree import TreeMethod, make_tree
from tests.fix.attacks import (
    FOUND,
    HONEST,
    SUBJECT_FILES,
    are_held,
    expected_trust,
    naive,
    reaches,
    with_subject,
)
from tests.fix.world import PYTHON, World, make_repository, run_git, try_out

pytestmark = pytest.mark.integration


def out_of_reach(world: World, edits: Mapping[str, str | None], **more: Any) -> None:
    """See that a trick fails where programs are held, and that trust is `host` where not."""
    result = try_out(world, edits, **more)
    assert result.trust is expected_trust()
    if are_held():
        assert (result.outcome, result.metrics) == (Outcome.COMPLETED, {"answer": HONEST}), result
    else:
        assert result.trust is Trust.HOST


@pytest.mark.parametrize("what", ["ledger", "origin", "candidates", "other trials", "key"])
def test_row_17_what_others_wrote_is_not_to_be_seen(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "w")
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True)
    tmp_path.chmod(0o755)
    home.chmod(0o755)
    (home / ".ssh").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    places = {
        "ledger": world.state / "ledger.db",
        "origin": world.origin / ".git" / "HEAD",
        "candidates": world.state / "candidates" / "c9" / "app.py",
        "other trials": world.state / "trials" / "t9" / "result" / "result.json",
        "key": home / ".ssh" / "id_ed25519",
    }
    path = places[what]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("seeds, answers, secrets\n")
    path.chmod(0o644)
    edits = reaches(f"open({str(path)!r}).read()")
    assert naive(tmp_path / "naive", edits) == FOUND
    out_of_reach(world, edits)


def test_row_17_a_subject_does_not_see_what_is_expected_of_it(tmp_path: Path) -> None:
    edits = reaches(
        """
        import os
        if "expected output" not in open("bench/expected.txt").read():
            raise ValueError
        """
    )
    assert naive(tmp_path / "naive", edits) == FOUND
    result = with_subject(World(tmp_path / "w", dict(SUBJECT_FILES)), edits)
    assert result.metrics.get("answer") == HONEST, result
    assert result.trust is expected_trust(has_subject=True)
    edits = reaches(
        "import os\nnames = ' '.join(os.environ)\n"
        "if 'RESULT' not in names and 'SEED' not in names: raise ValueError"
    )
    assert naive(tmp_path / "naive", edits) == FOUND
    result = with_subject(World(tmp_path / "v", dict(SUBJECT_FILES)), edits)
    assert result.metrics["answer"] == HONEST


def test_row_18_a_trial_is_told_its_seed_and_nothing_else(tmp_path: Path) -> None:
    edits = {
        "src/app.py": 'import os\ndef answer():\n    return 999 if os.environ["STEELYARD_SEED"]'
        ' in ("7", "8") else 1\n'
    }
    assert naive(tmp_path / "naive", edits) == FOUND
    world = World(tmp_path / "w")
    # Seeds that search uses, and one that it never does: the gap is there to be shown.
    values = [try_out(world, edits, seed=seed).metrics["answer"] for seed in (7, 8, 1009)]
    assert values == [FOUND, FOUND, HONEST]
    edits = reaches(
        """
        import os, sys
        told = " ".join(f"{name}={value}" for name, value in os.environ.items())
        told += " ".join(sys.argv) + os.getcwd() + " ".join(os.listdir("/proc/self/fd"))
        told += open("/proc/self/mountinfo").read() + open("/proc/self/cgroup").read()
        if "trial-number-3" not in told: raise ValueError
        """
    )
    assert naive(tmp_path / "naive", edits, env={"TRIAL": "trial-number-3"}) == FOUND
    out_of_reach(world, edits, trial="trial-number-3")


def test_row_20_there_is_no_repository_in_a_trial(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "naive")
    (origin / "src/app.py").write_text(
        reaches(
            """
        import subprocess
        subprocess.run(["git", "log", "--all"], check=True, capture_output=True)
        """
        )["src/app.py"]
    )
    run_git(origin, "commit", "-qam", "two")
    edits = {"src/app.py": (origin / "src/app.py").read_text()}
    assert naive(origin, edits, keep=True) == FOUND
    result = try_out(World(tmp_path / "w"), edits)
    assert (result.outcome, result.metrics) == (Outcome.COMPLETED, {"answer": HONEST}), result


def test_row_31_root_remounts_a_read_only_folder(tmp_path: Path) -> None:
    guarded = tmp_path / "guarded"
    guarded.mkdir()
    edits = reaches(
        f"""
        import ctypes, os
        libc = ctypes.CDLL(None)
        for path in ({str(guarded)!r}, "/usr"):
            if libc.mount(b"none", path.encode(), None, 32 | 4096, None) == 0:
                open(path + "/steelyard-was-here", "w").close()
                os.unlink(path + "/steelyard-was-here")
                break
        else:
            raise OSError
        """
    )
    folder = tmp_path / "naive"
    naive(folder, {})
    (folder / "src/app.py").write_text(edits["src/app.py"])
    if are_held():
        # As a careless runner does: root of a mount namespace, read-only binds, nothing more.
        unshare = shutil.which("unshare")
        assert unshare
        script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
        user = [] if os.geteuid() == 0 else ["-Ur"]
        subprocess.run(
            [
                unshare,
                *user,
                "-m",
                "sh",
                "-c",
                script,
                "sh",
                str(guarded),
                PYTHON,
                "bench/benchmark.py",
            ],
            cwd=folder,
            env={**os.environ, "STEELYARD_RESULT_PATH": str(folder / "result.json")},
            check=True,
        )
        said = json.loads((folder / "result.json").read_text())
        assert said["metrics"]["answer"] == FOUND, "it wrote to what was bound read-only"
    out_of_reach(World(tmp_path / "w"), edits)


@pytest.mark.parametrize(
    "code",
    [
        "import ctypes\nif ctypes.CDLL(None).unshare(0x10000000): raise OSError",
        "import os\nfound = open(f'/proc/{PID}/environ').read().count('SIBLING')",
        "import os\nos.listdir('/proc/PID/root/')",
        "import ctypes, os\nif ctypes.CDLL(None).ptrace(16, PID, 0, 0) < 0: raise OSError",
    ],
    ids=["nested user namespace", "environ of a sibling", "root of a sibling", "ptrace"],
)
def test_row_32_namespaces_and_processes_of_others(tmp_path: Path, code: str) -> None:
    if "unshare" in code and not are_held():
        return_code = subprocess.run(
            [PYTHON, "-c", "import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))"],
            capture_output=True,
            check=True,
        ).stdout
        assert return_code.strip() == b"-1", "there are none, so there is nothing to show"
        return
    sibling = subprocess.Popen(["sleep", "60"], env={"SIBLING": "secret"})
    try:
        edits = reaches(code.replace("{PID}", str(sibling.pid)).replace("PID", str(sibling.pid)))
        assert naive(tmp_path / "naive", edits) == FOUND
        out_of_reach(World(tmp_path / "w"), edits)
    finally:
        sibling.kill()
        sibling.wait()


def test_row_33_nothing_written_in_a_trial_reaches_the_sealed_tree(tmp_path: Path) -> None:
    code = """
    import os
    path = "src/data.txt"
    with open(path, "r+") as file:
        file.write("changed")
    try:
        os.link(path, "src/other.txt")
        os.chmod(path, 0o777)
    except OSError:
        pass
    raise ValueError
    """
    edits = {**reaches(code), "src/data.txt": "sealed!"}
    first = tmp_path / "first"
    naive(first, {**edits, "src/app.py": "def answer(): return 1\n"})
    second = tmp_path / "second"
    subprocess.run(["cp", "-al", str(first), str(second)], check=True)
    (second / "src/app.py").unlink()
    naive(second, {"src/app.py": edits["src/app.py"]}, keep=True)
    assert (first / "src/data.txt").read_text() == "changed", "hard links share what is written"

    world = World(tmp_path / "w")

    async def main() -> None:
        runner = world.runner()
        await runner.prepare()
        plan = await world.plan(runner, edits)
        result = await run_trial(plan, runner)
        assert result.outcome is Outcome.COMPLETED, result
        assert (plan.sealed.folder / "src/data.txt").read_text() == "sealed!"
        plan.sealed.check()
        for method in (TreeMethod.COPY,):
            tree = make_tree(runner.base, "x", [plan.sealed], method, owner=runner.owner)
            inodes = {(p.stat().st_dev, p.stat().st_ino) for p in tree.top.rglob("*")}
            sealed = {(p.stat().st_dev, p.stat().st_ino) for p in plan.sealed.folder.rglob("*")}
            assert not inodes & sealed
            tree.remove()
        runner.close()

    asyncio.run(main())


SECRET = "s3cret-value-of-a-key"


def test_secrets_reach_the_program_alone_and_no_kept_output(tmp_path: Path) -> None:
    edits = reaches(
        f"""
        import os
        print(os.environ["MODEL_API_KEY"], flush=True)
        import base64
        print(base64.b64encode(os.environ["MODEL_API_KEY"].encode()).decode(), flush=True)
        found = {SECRET!r} in open("/proc/1/environ").read()
        """
    )
    world = World(tmp_path / "w")
    result = try_out(world, edits, environment={"MODEL_API_KEY": SECRET})
    if are_held():
        assert result.metrics["answer"] == HONEST, "the namespace's first process shows none"
    kept = result.stages[0].stdout
    assert kept.startswith(b"[redacted]\n"), kept
    assert SECRET.encode() not in kept
    assert SECRET not in repr(result)
    import base64

    assert base64.b64encode(SECRET.encode())[:-4] not in kept


def test_a_variable_of_the_host_is_not_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    edits = reaches(
        "import os\nfound = 'AWS_SECRET_ACCESS_KEY' in os.environ or 'PYTHONPATH' in os.environ"
    )
    world = World(tmp_path / "w")
    assert try_out(world, edits).metrics["answer"] == HONEST


def test_strict_isolation_has_no_network_and_system_folders_only(tmp_path: Path) -> None:
    world = World(tmp_path / "w")
    outside = tmp_path / "outside.txt"
    outside.write_text("x")
    tmp_path.chmod(0o755)
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for edits in (
            reaches(f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 3)"),
            reaches("import os\nos.listdir('/home')\nos.listdir('/var')"),
        ):
            assert naive(tmp_path / "naive", edits) == FOUND
            result = try_out(world, edits, isolation="strict")
            assert result.trust is expected_trust()
            if are_held():
                assert result.metrics == {"answer": HONEST}, result
                assert result.details["network"] == "none"
