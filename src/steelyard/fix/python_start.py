"""Start a Python benchmark or check so that its own end can be told from anybody else's.

A program of its own, not imported by us: a trial's interpreter runs it in front of the script. It
keeps modules of the standard library from being taken over by files beside the script, and, once
the script has come to its end, says so with a token and the digest of the result. Code that leaves
by `os._exit`, or writes the result later, has no part in that. What runs in the same process can
still find the token: that is why such a trial is `contained`, and a subject is not.

    python start.py WORDS.json -- SCRIPT [ARGUMENT...]
    python start.py WORDS.json -m MODULE [ARGUMENT...]
"""
# a small program that starts in front of every script: no pathlib
# ruff: noqa: PTH100, PTH109, PTH112, PTH120, PTH123

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def _guard_standard_library(own: Sequence[str]) -> None:
    """Let no file of the tree stand in for a module of the standard library, but those in `own`."""
    import importlib.machinery
    import os

    names = frozenset(getattr(sys, "stdlib_module_names", ())) - frozenset(own) - {"test"}
    library = os.path.dirname(os.__file__)
    places = [library, library + "/lib-dynload"]

    class FromStandardLibrary:
        @staticmethod
        def find_spec(
            name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
        ) -> ModuleSpec | None:
            if path is None and name in names:
                return importlib.machinery.PathFinder.find_spec(name, places, target)
            return None

    # Behind built-in and frozen modules, before the search path.
    sys.meta_path.insert(2, FromStandardLibrary)


def _run_script(words: list[str]) -> None:
    import io
    import os
    import types
    from importlib.machinery import SourceFileLoader

    path = os.path.abspath(words[0])
    if os.path.isdir(path):  # a folder with a __main__.py
        import runpy

        sys.argv = words
        runpy.run_path(path, run_name="__main__")
        return
    sys.argv = [words[0], *words[1:]]
    _set_first_path(os.path.dirname(path))
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__file__ = words[0]
    main.__loader__ = SourceFileLoader("__main__", path)
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    exec(code, main.__dict__)  # noqa: S102 — the script that we were told to run


def _run_module(words: list[str]) -> None:
    import os
    import runpy

    if words[0] == "pytest":
        import pytest  # noqa: F401 — the installed one, before the tree is on the path
    sys.argv = words
    _set_first_path(os.getcwd())
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def _set_first_path(folder: str) -> None:
    own = sys.path[0] if not getattr(sys.flags, "safe_path", False) else None
    if own is not None:
        sys.path[0] = folder


def _record_tests(to: str) -> Callable[[list[str]], None]:
    """Write, at the end of a pytest session, which tests passed."""
    import json

    import pytest

    passed: set[str] = set()
    others: dict[str, str] = {}

    class Recorder:
        @staticmethod
        def pytest_runtest_logreport(report: pytest.TestReport) -> None:
            if report.passed and report.when == "call":
                passed.add(report.nodeid)
            elif not report.passed:
                others[report.nodeid] = report.outcome

    def main(words: list[str]) -> None:
        status = pytest.main(words, plugins=[Recorder])
        said = {"status": int(status), "passed": sorted(passed - set(others)), "others": others}
        with open(to, "w", encoding="utf-8") as file:
            json.dump(said, file)
        raise SystemExit(int(status))

    return main


def _end_of_main_threads() -> None:
    threading = sys.modules.get("threading")
    if threading is None:
        return
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()


def main() -> None:
    """Run what the words say."""
    import json
    import os
    from hashlib import sha256

    with open(sys.argv[1], encoding="utf-8") as file:
        told = json.load(file)
    words = sys.argv[2:]
    token, write, digest, read = b"", os.write, sha256, open
    if told.get("token_fd") is not None:
        os.set_inheritable(told["mark_fd"], False)
        token = os.read(told["token_fd"], 64)
        os.close(told["token_fd"])
    _guard_standard_library(told["own_modules"])
    if words[0] == "-m" and words[1] == "pytest" and told.get("tests_path"):
        run = _record_tests(told["tests_path"])
        _set_first_path(os.getcwd())
        run(words[2:])
        return
    try:
        if words[0] == "-m":
            _run_module(words[1:])
        else:
            _run_script(words[1:])
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    _end_of_main_threads()
    if token:
        try:
            with read(told["result_path"], "rb") as file:
                content = file.read(1024 * 1024 + 1)
        except OSError:
            return
        write(told["mark_fd"], token + b" " + digest(content).hexdigest().encode() + b"\n")


if __name__ == "__main__":
    main()
