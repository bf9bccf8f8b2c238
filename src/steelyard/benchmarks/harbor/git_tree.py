"""Fetch one commit of a Git remote and hand out its files.

Nothing of the user's or the machine's Git configuration is read, no hook and no filter runs and
nothing is checked out: the files come from the object store, as they were committed.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

from steelyard.benchmarks.harbor.trees import Blob, TreeRefused
from steelyard.benchmarks.pack.paths import MAX_FILES

_REMOTE: Final = re.compile(r"(https?|ssh|git|file)://.+|[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:.+")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_USER: Final = re.compile(r"(?<=://)[^/@]+@")
_REVISION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_FETCH_S: Final = 3600.0
_LOCAL_S: Final = 600.0
_SAID_CHARS: Final = 400
_PASSED: Final = (
    *("HOME", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
)
"""All of this process's environment that Git is given beside its path."""
MAX_BLOB_BYTES: Final = 2 * 1024**3


class FetchFailed(Exception):
    """Git could not bring the commit; its words are for people."""


def is_remote(text: str) -> bool:
    """True where a source is written as a Git remote."""
    return _REMOTE.fullmatch(text) is not None


def without_user(text: str) -> str:
    """Leave out of an address who asks, and with which password."""
    return _USER.sub("", text)


class GitTree:
    """A bare repository that holds one commit."""

    def __init__(self, folder: Path) -> None:
        """Name an empty folder to work in.

        Raises:
            FetchFailed: there is no `git`.
        """
        git = shutil.which("git")
        if git is None:
            raise FetchFailed("there is no `git` on this machine")
        self._git = git
        self._folder = folder

    def fetch(self, remote: str, revision: str | None) -> str:
        """Fetch a commit and give its id. Blocking, over the network.

        Args:
            remote: where from.
            revision: a branch, a tag or a whole commit id; None for the remote's own choice.

        Raises:
            FetchFailed: it cannot be had.
        """
        if not is_remote(remote):
            raise FetchFailed(f"{without_user(remote)!r} is no Git remote")
        if revision is not None and not _REVISION.fullmatch(revision):
            raise FetchFailed(f"{revision!r} is no revision")
        self._run(["init", "--quiet", "--bare", str(self._folder)], _LOCAL_S)
        wanted = revision or "HEAD"
        fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]
        depth = ["--depth=1"]
        try:
            self._run([*fetch, *depth, "--", remote, f"{wanted}:refs/wanted"], _FETCH_S)
        except FetchFailed:
            if revision is None or not _COMMIT.fullmatch(revision):
                raise
            # Not every server hands out a commit by its id: then all of them are fetched.
            self._run([*fetch, "--", remote, "+refs/*:refs/all/*"], _FETCH_S)
            self._run(["update-ref", "refs/wanted", revision], _LOCAL_S)
        found = self._run(["rev-parse", "--verify", "refs/wanted^{commit}"], _LOCAL_S)
        return found.decode().strip()

    def blobs(self, commit: str) -> Iterator[Blob]:
        """Iterate over the files of a commit.

        Raises:
            FetchFailed: an object cannot be read.
            TreeRefused: there are too many.
        """
        listed = self._run(["ls-tree", "-r", "-z", "--full-tree", commit], _LOCAL_S)
        lines = [line for line in listed.split(b"\0") if line]
        if len(lines) > MAX_FILES:
            raise TreeRefused(f"more than {MAX_FILES} files")
        for line in lines:
            head, _, name = line.partition(b"\t")
            mode, _kind, object_id = head.decode().split()
            yield Blob(name.decode("utf-8", "surrogateescape"), mode, self._reader(object_id))

    def _reader(self, object_id: str) -> _Reader:
        return _Reader(self, object_id)

    def content(self, object_id: str) -> bytes:
        """Read one object.

        Raises:
            FetchFailed: it cannot be read.
            TreeRefused: it is too large.
        """
        size = int(self._run(["cat-file", "-s", object_id], _LOCAL_S))
        if size > MAX_BLOB_BYTES:
            raise TreeRefused(f"a file of {size // 1024**2} MiB")
        return self._run(["cat-file", "blob", object_id], _LOCAL_S)

    def _run(self, words: Sequence[str], limit_s: float) -> bytes:
        command = [self._git, "-c", "core.hooksPath=", "-c", "core.fsmonitor=false", *words]
        passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
        env = {
            **passed,
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_DIR": str(self._folder),
        }
        try:
            done = subprocess.run(  # noqa: S603 — words of ours, names checked, no shell
                command, stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=limit_s
            )
        except subprocess.TimeoutExpired as error:
            raise FetchFailed(f"`git {words[0]}` took longer than {limit_s:g} s") from error
        except OSError as error:
            raise FetchFailed(f"`git` cannot be started: {error.strerror}") from error
        if done.returncode != 0:
            said = without_user(done.stderr.decode("utf-8", "replace").strip())[-_SAID_CHARS:]
            raise FetchFailed(f"`git {words[0]}`: {said}")
        return done.stdout


class _Reader:
    """Reads an object when called."""

    def __init__(self, tree: GitTree, object_id: str) -> None:
        self._tree = tree
        self._object_id = object_id

    def __call__(self) -> IO[bytes]:
        return io.BytesIO(self._tree.content(self._object_id))
