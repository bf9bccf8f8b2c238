"""What a program of a trial sees of this machine: bubblewrap's options. Pure, but for looking.

`standard`: the host's files, read-only, its network, and none of what a candidate has no business
with: the user's checkout and state (the trial's tree stands in their place), credentials, sockets
of daemons, temporary files. `strict`: system folders and interpreters alone, no network.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from steelyard.environments.bubblewrap import INSIDE_UID
from steelyard.environments.mount_view import first_closed

Isolation = Literal["standard", "strict"]

INSIDE: Final = Path("/run/steelyard")
"""Where a trial's own folders are shown; `/run` itself, with its daemons' sockets, is hidden."""
NO_ROOM_BYTES: Final = 4096
SHM_BYTES: Final = 256 * 1024 * 1024

CREDENTIALS: Final = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials"),
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".pgpass", ".my.cnf", ".vault-token"),
    *(".terraform.d", ".terraformrc", ".boto", ".s3cfg", ".password-store", ".mozilla"),
    *(".claude", ".claude.json", ".codex", ".gemini", ".aider.conf.yml", ".huggingface"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".composer/auth.json"),
    *(".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".env"),
    *(".config/gcloud", ".config/gh", ".config/hub", ".config/git", ".config/op", ".gitconfig"),
    *(".config/containers", ".config/google-chrome", ".config/chromium", ".config/steelyard"),
    *(".config/pip", ".config/pypoetry", ".config/rclone", ".config/sops", ".config/doctl"),
    *(".config/agentagon", ".config/github-copilot", ".config/anthropic", ".config/openai"),
    *(".local/share/keyrings", ".local/share/gopass", ".local/share/steelyard", ".pulumi"),
    *(".cache/huggingface/token", ".bash_history", ".zsh_history", ".python_history", ".snowflake"),
)
"""Below HOME; hidden where they exist."""
_TOOLCHAINS: Final = (".rustup", ".nvm", ".sdkman", ".pyenv", ".rbenv", ".asdf", ".local/share/uv")


@dataclass(frozen=True, slots=True)
class View:
    """What one program sees, besides the machine."""

    isolation: Isolation
    tree: Path
    """Where the trial's tree is now."""
    tree_at: Path
    """Where it is shown: in place of the user's checkout."""
    binds: tuple[tuple[Path, Path, bool], ...]
    """Folders or files, where they are shown, and whether they can be written."""
    hidden: tuple[Path, ...] = ()
    """Folders and files that are covered, where they exist and can be reached."""
    shown: tuple[Path, ...] = ()
    """Interpreters that are shown read-only at their own paths, whatever covers them."""
    covered: tuple[tuple[Path, bool], ...] = ()
    """Paths of the tree, as shown, that this program must not see, and whether they are folders:
    the evaluation's, for a subject."""
    network: bool = True


def options(
    view: View,
    variables: Mapping[str, str],
    *,
    chdir: str,
    status_fd: int,
    block_fd: int,
    seccomp_fd: int,
) -> bytes:
    """Write bubblewrap's options, for `--args`. Looks at what exists on this machine.

    Raises:
        ValueError: a NUL byte in a variable or path.
    """
    words = [
        "--unshare-all",
        *(["--share-net"] if view.network else []),
        "--unshare-user",
        *("--uid", str(INSIDE_UID), "--gid", str(INSIDE_UID)),
        *("--cap-drop", "ALL"),
        *("--disable-userns", "--die-with-parent", "--new-session", "--clearenv"),
    ]
    for name, value in variables.items():
        words += ["--setenv", name, value]
    words += _system(view) if view.isolation == "strict" else ["--ro-bind", "/", "/"]
    words += ["--proc", "/proc", "--dev", "/dev", "--size", str(SHM_BYTES)]
    words += ["--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    words += ["--size", str(1024 * 1024), "--perms", "0755", "--tmpfs", "/run"]
    words += _resolver(view)
    for source, target, is_writable in view.binds:
        words += ["--bind" if is_writable else "--ro-bind", str(source), str(target)]
    words += ["--bind", str(view.tree), str(view.tree_at)]
    for path in view.shown:
        words += ["--ro-bind-try", str(path), str(path)]
    if view.isolation == "standard":
        for path in view.hidden:
            words += _cover(path, path.is_dir())
    for path, is_folder in view.covered:
        words += _cover(path, is_folder)
    words += ["--remount-ro", "/run"]
    if view.isolation == "strict":
        words += ["--remount-ro", "/"]
    words += ["--chdir", chdir]
    words += ["--seccomp", str(seccomp_fd), "--json-status-fd", str(status_fd)]
    words += ["--block-fd", str(block_fd)]
    encoded = [os.fsencode(word) for word in words]
    if any(b"\0" in word for word in encoded):
        raise ValueError("a NUL byte in a variable or folder")
    return b"\0".join(encoded) + b"\0"


def _cover(path: Path, is_folder: bool) -> list[str]:
    if not is_folder:
        return ["--ro-bind", os.devnull, str(path)]
    size = ["--size", str(NO_ROOM_BYTES), "--perms", "0555"]
    return [*size, "--tmpfs", str(path), "--remount-ro", str(path)]


def _system(view: View) -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        folder = Path("/", name)
        if folder.is_symlink():
            words += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            words += ["--ro-bind", str(folder), str(folder)]
    for name in ("ld.so.cache", "alternatives", "passwd", "group", "localtime", "ssl/certs"):
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return words


def _resolver(view: View) -> list[str]:
    """Show what `/etc/resolv.conf` points to below `/run`, where it does."""
    target = Path("/etc/resolv.conf").resolve()
    if not view.network or Path("/run") not in target.parents or not target.exists():
        return []
    return ["--ro-bind", str(target), str(target)]


def credential_places(home: Path) -> tuple[Path, ...]:
    """List what is hidden below a HOME: what exists, with links resolved."""
    found = []
    for name in CREDENTIALS:
        path = home / name
        if os.path.lexists(path):
            found += [path.resolve()] if path.is_symlink() else [path]
    return tuple(path for path in found if path.exists())


def listening_sockets(text: str, origin: Path) -> tuple[Path, ...]:
    """List sockets of daemons that a program could connect to, read-only files or not.

    Args:
        text: of `/proc/net/unix`.
        origin: the user's checkout: hidden already, as are `/run` and temporary folders.
    """
    already = (Path("/run"), Path("/var/run"), Path("/tmp"), Path("/var/tmp"), origin)  # noqa: S108
    found = set()
    for line in text.splitlines()[1:]:
        words = line.split(maxsplit=7)
        if len(words) == 8 and words[7].startswith("/"):
            path = Path(words[7])
            if not set(already) & {path, *path.parents}:
                found.add(path)
    return tuple(sorted(found))


def can_be_reached(path: Path, *, as_other_user: bool) -> bool:
    """True where a trial's user could look at it: what it cannot reach needs no cover."""
    try:
        if as_other_user:
            closed = first_closed(path.parent)
            return closed is None
        return path.exists()
    except OSError:
        return False


def interpreter_folders(
    path: str, home: Path, bases: Sequence[Path], origin: Path
) -> tuple[Path, ...]:
    """List the folders of interpreters that something of a trial covers or closes.

    A folder of the search path stands for the one it is in (`~/.pyenv/shims` for `~/.pyenv`), since
    programs come with their libraries. One in the user's checkout counts where it is a virtual
    environment: those belong to no candidate.

    Args:
        path: the search path.
        home: the user's home.
        bases: prefixes of this interpreter.
        origin: the user's checkout.
    """
    wanted = [base.resolve() for base in bases] + [home / name for name in _TOOLCHAINS]
    for word in path.split(os.pathsep):
        folder = Path(word)
        if not word or not folder.is_absolute():
            continue
        above = folder.parent
        is_of_home = above in (home, Path("/"), origin)
        has_tree = folder.name in ("bin", "sbin", "shims", "Scripts") and not is_of_home
        wanted.append(above if has_tree else folder)
    found: list[Path] = []
    for folder in wanted:
        try:
            if not folder.is_dir() or Path("/usr") in (folder, *folder.parents):
                continue
        except OSError:
            continue
        if origin in (folder, *folder.parents) and not (folder / "pyvenv.cfg").exists():
            continue
        if folder in (home, Path("/")) or folder in found:
            continue
        found.append(folder)
    return tuple(found)
