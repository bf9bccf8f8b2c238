"""Start Git: the only module that does, and never with anybody's configuration but ours.

Every setting through which a repository could make Git run a program (hooks, fsmonitor, filters by
global configuration, pagers, editors, credential helpers, transports) is off. What is asked here
needs none. A repository's own `config` file is read, since Git cannot be kept from it; what it says
about those is overridden.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final

from steelyard.config.errors import BadInput, Fault
from steelyard.config.printable import one_line

MAX_OUTPUT_BYTES: Final = 256 * 1024 * 1024
TIMEOUT_S: Final = 600.0
_SHOWN_BYTES: Final = 2000

_ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "LC_ALL": "C",
        "HOME": os.devnull,
        "XDG_CONFIG_HOME": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",  # `git status` would rewrite the index of whoever is looked at
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_SSH_COMMAND": "false",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "false",
        "GIT_AUTHOR_NAME": "Steelyard",
        "GIT_AUTHOR_EMAIL": "steelyard@localhost",
        "GIT_AUTHOR_DATE": "2000-01-01T00:00:00Z",  # commits of ours are named by their content
        "GIT_COMMITTER_NAME": "Steelyard",
        "GIT_COMMITTER_EMAIL": "steelyard@localhost",
        "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
    }
)
_SETTINGS: Final = (
    f"core.hooksPath={os.devnull}",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    f"core.attributesFile={os.devnull}",
    f"core.excludesFile={os.devnull}",
    "core.commitGraph=false",
    "core.pager=cat",
    "protocol.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "safe.directory=*",  # whose files they are is not the question: nothing of theirs is run
)


class GitMissing(BadInput):
    """There is no `git` on this machine."""

    def __init__(self) -> None:
        super().__init__(
            "fix needs Git, and there is no `git` on the search path",
            remedy="install it (`apt-get install git`, `dnf install git`, `brew install git`)",
        )


class GitFailed(Fault):
    """Git ended with an error; its own words are in the message."""

    def __init__(self, arguments: Sequence[str], status: int, said: bytes) -> None:
        words = one_line(said[-_SHOWN_BYTES:].decode("utf-8", "replace").strip())
        self.status = status
        self.said = words
        super().__init__(
            f"`git {' '.join(arguments[:3])}` ended with {status}: {words or 'without a word'}"
        )


@dataclass(frozen=True, slots=True)
class Repository:
    """Where Git finds what it is asked about; nothing is searched for."""

    git_dir: Path
    work_tree: Path | None = None
    index: Path | None = None
    """An index of ours in place of the repository's own."""

    def environment(self) -> dict[str, str]:
        """Give the variables that name it."""
        named = {"GIT_DIR": str(self.git_dir)}
        if self.work_tree is not None:
            named["GIT_WORK_TREE"] = str(self.work_tree)
        if self.index is not None:
            named["GIT_INDEX_FILE"] = str(self.index)
        return named


@cache
def git_program() -> str:
    """Find Git.

    Raises:
        GitMissing: there is none.
    """
    found = shutil.which("git")
    if found is None:
        raise GitMissing
    return found


def git(
    arguments: Sequence[str],
    repository: Repository | None = None,
    *,
    cwd: Path | None = None,
    stdin: bytes | IO[bytes] = b"",
    stdout: IO[bytes] | None = None,
    max_output_bytes: int = MAX_OUTPUT_BYTES,
) -> bytes:
    """Run Git to its end; what it wrote. Blocking.

    Args:
        arguments: without the program's name.
        repository: None lets Git look for one from `cwd` upwards.
        cwd: the folder it starts in; the work tree, else the root folder.
        stdin: what it reads, bytes or an open file.
        stdout: an open file that takes its output in place of the answer.
        max_output_bytes: more than this is a fault.

    Raises:
        GitMissing: there is no Git.
        GitFailed: it ended with another status than 0, took too long, or said too much.
    """
    variables = {
        "PATH": os.environ.get("PATH", os.defpath),
        **_ENVIRONMENT,
        **(repository.environment() if repository else {}),
    }
    command = [git_program()]
    for setting in _SETTINGS:
        command += ["-c", setting]
    command += arguments
    folder = cwd or (repository.work_tree if repository and repository.work_tree else Path("/"))
    with tempfile.TemporaryFile() as written, tempfile.TemporaryFile() as said:
        given: IO[bytes] | None = None
        source: IO[bytes] | int
        if isinstance(stdin, bytes):
            if stdin:
                given = tempfile.TemporaryFile()  # noqa: SIM115 — closed below
                given.write(stdin)
                given.seek(0)
            source = given if given is not None else subprocess.DEVNULL
        else:
            source = stdin
        try:
            ended = subprocess.run(  # noqa: S603 — our words, no shell
                command,
                stdin=source,
                stdout=stdout if stdout is not None else written,
                stderr=said,
                env=variables,
                cwd=folder,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise GitFailed(arguments, -1, f"no end after {TIMEOUT_S:.0f} s".encode()) from error
        except OSError as error:
            raise GitFailed(arguments, -1, str(error).encode()) from error
        finally:
            if given is not None:
                given.close()
        if ended.returncode != 0:
            said.seek(0)
            raise GitFailed(arguments, ended.returncode, said.read(64 * 1024))
        if written.seek(0, os.SEEK_END) > max_output_bytes:
            raise GitFailed(arguments, 0, f"more than {max_output_bytes} bytes".encode())
        written.seek(0)
        return written.read()


def succeeds(arguments: Sequence[str], repository: Repository) -> bool:
    """Ask a question that Git answers by its exit status."""
    try:
        git(arguments, repository)
    except GitFailed as error:
        if error.status == 1:
            return False
        raise
    return True


@contextmanager
def streaming(
    arguments: Sequence[str], repository: Repository, *, stdin: bytes
) -> Iterator[IO[bytes]]:
    """Run Git and read what it writes as it comes; for contents that fill no memory.

    Raises:
        GitMissing: there is no Git.
        GitFailed: it ended with another status than 0, and nothing else went wrong first.
    """
    command = [git_program()]
    for setting in _SETTINGS:
        command += ["-c", setting]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(  # noqa: S603 — our words, no shell
            [*command, *arguments],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=said,
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                **_ENVIRONMENT,
                **repository.environment(),
            },
            cwd="/",
        )
        with process:
            if process.stdout is None:  # pragma: no cover - asked for
                raise AssertionError("no pipe")
            try:
                yield process.stdout
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0:
            said.seek(0)
            raise GitFailed(arguments, process.returncode, said.read(64 * 1024))
