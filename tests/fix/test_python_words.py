"""What is put in front of a Python command, and what keeps pytest from being steered."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.fix.manifest import Entry, Mode, TreeManifest
from steelyard.fix.python_words import is_pytest, own_modules, pytest_shield, python_command
from steelyard.fix.runner_probe import weaknesses
from steelyard.fix.sealing import PathRules
from steelyard.fix.walls import listening_sockets


@pytest.mark.parametrize(
    ("argv", "started"),
    [
        ("python3 b.py x", "python3 P W -- b.py x"),
        ("/usr/bin/python3.11 -u -OO b.py", "/usr/bin/python3.11 -u -OO P W -- b.py"),
        ("python -X dev -W error b.py -m y", "python -X dev -W error P W -- b.py -m y"),
        ("python3 -Werror b.py", "python3 -Werror P W -- b.py"),
        ("python3 -m pkg.bench --n 3", "python3 P W -m pkg.bench --n 3"),
        ("python3 -c pass", None),
        ("python3 -", None),
        ("python3", None),
        ("python3 -m", None),
        ("pypy b.py", None),
        ("./b.py", None),
        ("python3-config --x", None),
    ],
)
def test_what_runs_in_front_of_a_script_or_module(argv: str, started: str | None) -> None:
    command = python_command(argv.split())
    assert (None if command is None else " ".join(command.started_by("P", "W"))) == started


def test_pytest_is_known_by_its_names() -> None:
    assert is_pytest(["python3", "-m", "pytest", "tests"])
    assert is_pytest(["/usr/bin/pytest", "tests"])
    assert not is_pytest(["python3", "-m", "unittest"])
    assert not is_pytest(["python3", "pytest.py"])


def tree(*paths: str) -> TreeManifest:
    return TreeManifest.of(Entry(path, Mode.REGULAR, 0, "", "") for path in paths)


def test_modules_that_a_tree_has_of_its_own_keep_their_names() -> None:
    rules = PathRules(("src",), ("bench",))
    manifest = tree("bench/queue.py", "lib/statistics/__init__.py", "src/json.py", "lib/mine.py")
    assert own_modules([manifest], rules) == ["queue", "statistics"]


PATHS = ("tests/test_a.py", "tests/conftest.py", "conftest.py", "pyproject.toml", "sub/tox.ini")


@pytest.mark.parametrize(
    ("editable", "argv", "cwd", "wants_config", "confcutdir"),
    [
        (("src",), "python3 -m pytest tests", ".", False, None),
        (("src", "pyproject.toml"), "python3 -m pytest tests", ".", True, None),
        (("src", "pyproject.toml"), "python3 -m pytest tests/test_a.py::test_x", ".", True, None),
        (("conftest.py",), "python3 -m pytest tests -q", ".", False, "tests"),
        (("conftest.py",), "python3 -m pytest tests/test_a.py", ".", False, "tests"),
        (("conftest.py",), "pytest", "tests", False, "tests"),
        (("sub",), "pytest tests", ".", False, None),
        (("sub",), "pytest", "sub", True, None),
    ],
)
def test_pytest_is_shielded_where_a_candidate_could_steer_it(
    editable: tuple[str, ...], argv: str, cwd: str, wants_config: bool, confcutdir: str | None
) -> None:
    shield = pytest_shield(argv.split(), cwd, PATHS, PathRules(editable, ("tests",)))
    assert (shield.wants_config, shield.confcutdir) == (wants_config, confcutdir)
    options = shield.options(config="/kit/c.ini", root="/tree")
    assert options.startswith("-p no:cacheprovider")
    assert ("-c /kit/c.ini --rootdir /tree" in options) is wants_config
    assert ("--confcutdir" in options) is (confcutdir is not None)


TIGHT = (
    '{"CapEff": 0, "CapPrm": 0, "CapBnd": 0, "CapInh": 0, "CapAmb": 0, "NoNewPrivs": "1",'
    '"Seccomp": "2", "uid": 65534, "remount": "EPERM", "mount": "EPERM", "unshare": "EPERM",'
    '"write_usr": "EROFS", "write_root": "EROFS", "write_run": "EROFS", "write_sysctl": "EACCES",'
    '"read_canary": "ENOENT", "read_shadow": "EACCES", "first_process": "bwrap"}'
)


@pytest.mark.parametrize(
    ("was", "is_", "said"),
    [
        ('"CapEff": 0', '"CapEff": 4', "CapEff is 0x4"),
        ('"NoNewPrivs": "1"', '"NoNewPrivs": "0"', "new privileges"),
        ('"Seccomp": "2"', '"Seccomp": "0"', "no system-call filter"),
        ('"uid": 65534', '"uid": 0', "root inside"),
        ('"remount": "EPERM"', '"remount": "done"', "remount was answered done"),
        ('"unshare": "EPERM"', '"unshare": "done"', "unshare was answered done"),
        ('"write_root": "EROFS"', '"write_root": "done"', "write_root was answered done"),
        ('"read_canary": "ENOENT"', '"read_canary": "done"', "read_canary was answered done"),
        ('"first_process": "bwrap"', '"first_process": "init"', "no process namespace"),
        ("}", ', "x": 1', "nothing that can be read"),
        ('"uid": 65534,', "", "nothing that can be read"),
    ],
)
def test_each_finding_of_the_probe_has_a_value_that_fails_it(was: str, is_: str, said: str) -> None:
    assert weaknesses(TIGHT.encode()) == []
    assert said in "; ".join(weaknesses(TIGHT.replace(was, is_).encode()))


def test_sockets_that_daemons_listen_on_are_found_and_those_hidden_anyway_left_out() -> None:
    text = (
        "Num RefCount Protocol Flags Type St Inode Path\n"
        "0: 00000002 00000000 00010000 0001 01 21 /var/lib/lxd/unix.socket\n"
        "0: 00000002 00000000 00010000 0001 01 22 /run/docker.sock\n"
        "0: 00000002 00000000 00010000 0001 01 23 @abstract\n"
        "0: 00000003 00000000 00000000 0001 03 24\n"
        "0: 00000002 00000000 00010000 0001 01 25 /srv/app/.steelyard/own\n"
        "0: 00000002 00000000 00010000 0001 01 26 /srv/with space/socket\n"
    )
    found = listening_sockets(text, Path("/srv/app"))
    assert found == (Path("/srv/with space/socket"), Path("/var/lib/lxd/unix.socket"))
