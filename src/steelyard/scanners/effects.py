"""What a command does to files and to the network, read off its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from steelyard.scanners.acts import Act, Code, Command, How, Reach, Touch, words
from steelyard.scanners.patches import patched
from steelyard.scanners.shell.paths import name_of, resolved
from steelyard.scanners.shell.printing import printed

READERS: Final = words(
    "cat tac head tail less more bat batcat nl xxd hexdump od strings base64 base32 sort "
    "uniq cut wc diff cmp comm paste column fold jq yq file md5sum sha1sum sha256sum vim "
    "vi nano emacs view gzip zcat zless bzcat xzcat openssl source . rev join split "
    "csplit pr expand"
)
_PATTERN_FIRST: Final = words("grep egrep fgrep rg ag ack zgrep sed awk gawk mawk perl ruby")
INTERPRETERS: Final = {
    "python": "python", "node": "javascript", "nodejs": "javascript", "perl": "perl",
    "ruby": "ruby", "php": "php", "deno": "javascript", "bun": "javascript", "ipython": "python",
    "pypy": "python", "lua": "lua",
}  # fmt: skip
CLIENTS: Final = words(
    "curl wget http https xh httpie lynx w3m links fetch aria2c nc ncat netcat socat "
    "telnet ftp tftp ssh scp sftp rsync ping ping6 dig nslookup host nmap masscan openssl "
    "hping3 traceroute drill websocat grpcurl"
)
_URL: Final = re.compile(r"(?:[a-z][a-z0-9+.-]{1,15}:)?//[^\s'\"<>|;)]+", re.IGNORECASE)
_HOST: Final = re.compile(
    r"^(?:[^\s@/]+@)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::\d+)?(?:[/?#].*)?$"
)
_VERSION: Final = re.compile(r"[\d.]+$")
_SENDING: Final = (
    "-d", "--data", "--data-binary", "--data-raw", "--data-urlencode", "-F", "--form", "-T",
    "--upload-file", "--post-data", "--post-file", "--body-data", "--json", "-H", "--header", "-u",
)  # fmt: skip


_SENDS_FILES: Final = ("-T", "--upload-file", "--post-file")


def language_of(name: str) -> str | None:
    """Name the language that a program runs; None where it is no interpreter."""
    return INTERPRETERS.get(_VERSION.sub("", name))


def effects_of(command: Command) -> Iterator[Act]:
    """Give what a command touches, reaches and runs."""
    yield from _redirected(command)
    name, args = command.name, command.args
    if name in ("rm", "unlink", "shred", "rmdir", "trash", "srm", "del", "rimraf"):
        deep = command.has("rR", "--recursive") or _any(command, "rR") or name == "rimraf"
        for path in command.operands:
            yield _touch(command, How.DELETE, path, deep=deep)
    elif name in READERS:
        yield from _read(command, command.operands)
        if name == "sort" and (out := command.option("-o", "--output")):
            yield _touch(command, How.WRITE, out)
    elif name in ("ls", "stat", "readlink", "tree", "du", "cd", "find", "unzip", "7z"):
        for path in command.operands[:1] if name in ("find", "cd") else command.operands:
            yield _touch(command, How.READ, path)
    elif name == "tee":
        how = How.APPEND if command.has("a", "--append") else How.WRITE
        for path in command.operands:
            yield _touch(command, how, path, command.stdin)
    elif name in ("cp", "mv", "install", "ln", "rsync", "scp"):
        yield from _copied(command)
    elif name in ("truncate", "touch", "mkfifo"):
        is_emptied = name == "truncate" and (command.option("-s", "--size") or "") in ("0", "=0")
        for path in [one for one in command.operands if not one.isdigit()]:
            yield _touch(command, How.WRITE if is_emptied else How.APPEND, path,
                         "" if is_emptied else None)  # fmt: skip
    elif name == "tar" and "--remove-files" in args:
        for path in command.operands:
            yield _touch(command, How.DELETE, path, deep=True)
    elif name == "dd":
        for one in args:
            key, _, path = one.partition("=")
            if key in ("if", "of") and path:
                yield _touch(command, How.READ if key == "if" else How.WRITE, path)
    elif name in ("chmod", "chown", "chgrp", "chattr", "setfacl", "setcap"):
        for path in command.operands[1:]:
            yield _touch(command, How.MODE, path, command.operands[0], deep=_any(command, "R"))
    elif name in _PATTERN_FIRST:
        yield from _filtered(command)
    elif name in ("apply_patch", "patch", "git") and (command.stdin or args):
        yield from _patch(command)
    if (language := language_of(name)) is not None:
        yield from _program(command, language)
    if name in CLIENTS or (name == "git" and "://" in command.text):
        yield from _reached(command)


def _any(command: Command, letters: str) -> bool:
    return any(command.has(letter) for letter in letters)


def _touch(
    command: Command, how: How, path: str, content: str | None = None, *,
    old: str | None = None, deep: bool = False,
) -> Touch:  # fmt: skip
    where = resolved(path, command.cwd)
    return Touch(how, where, command.text, content, old, deep, command.name)


def _redirected(command: Command) -> Iterator[Act]:
    for one in command.redirections:
        if one.path.startswith(("/dev/tcp/", "/dev/udp/")):
            host = one.path.split("/")[3]
            yield Reach(host.lower(), one.path, command.text, (), one.path[1:8])
        elif one.op.startswith("<") and one.op != "<>":
            yield Touch(How.READ, one.path, command.text, by=command.name)
        elif ">" in one.op:
            content = printed(command)
            if content is None and (not command.name or command.name in (":", "true")):
                content = ""
            how = How.APPEND if ">>" in one.op else How.WRITE
            yield Touch(how, one.path, command.text, content, by=command.name or ">")


def _read(command: Command, paths: list[str]) -> Iterator[Act]:
    for path in paths:
        if path != "-" and not path.isdigit():
            yield _touch(command, How.READ, path)


def _copied(command: Command) -> Iterator[Act]:
    operands = command.operands
    target = command.option("-t", "--target-directory")
    if target is None:
        if len(operands) < 2:
            return
        *operands, target = operands
    if command.name == "ln" and operands:
        yield _touch(command, How.WRITE, target, f"-> {resolved(operands[0], command.cwd)}")
        return
    for source in operands:
        if ":" in source.partition("/")[0]:
            continue
        yield _touch(command, How.READ, source)
        if command.name == "mv":
            goes_to = resolved(target, command.cwd)
            yield _touch(command, How.DELETE, source, goes_to, deep=True)
    host, colon, _ = target.partition(":")
    if colon and "/" not in host and command.name in ("scp", "rsync"):
        name = host.rpartition("@")[2].lower()
        yield Reach(name, target, command.text, tuple(f"@{one}" for one in operands), command.name)
        return
    paths = [target]
    if target.endswith("/") or len(operands) > 1:
        paths = [f"{target.rstrip('/')}/{name_of(one.rstrip('/'))}" for one in operands]
    for source, path in zip(operands, paths, strict=False):
        # What stood there is not known; `old` says what it is a copy of.
        content = "" if source == "/dev/null" else None
        yield _touch(command, How.WRITE, path, content, old=resolved(source, command.cwd))


def _filtered(command: Command) -> Iterator[Act]:
    """`sed`, `awk`, `grep`, `perl`: a pattern or a program, then files."""
    operands = command.operands
    given = command.option("-e", "--expression", "--regexp", "-f")
    program = given if given is not None else operands[0] if operands else ""
    files = [one for one in operands if one != program or given is None]
    files = files if given is not None else files[1:]
    name = command.name
    in_place = name in ("sed", "perl", "ruby") and any(
        one.startswith(("-i", "--in-place", "-pi", "-ni", "-p0i", "-0pi")) for one in command.args
    )
    for path in files:
        if in_place:
            old, new = _substitution(program)
            yield _touch(command, How.EDIT, path, new, old=old)
        else:
            yield _touch(command, How.READ, path)


def _substitution(program: str) -> tuple[str | None, str | None]:
    """Give what a `s/old/new/` puts in place of what; a deletion of lines leaves nothing."""
    if (found := re.match(r"^[^s]{0,40}?s([/|#@,!:])", program)) is not None:
        pieces = re.split(rf"(?<!\\){re.escape(found[1])}", program[found.end() :])
        if len(pieces) >= 2:
            return pieces[0], pieces[1]
    if re.search(r"(?:^|[/\d$,\s])d\s{0,20}(?:;|$)", program):
        return program, ""
    if (
        found := re.match(r"^.{0,200}?[0-9$/]\s{0,20}([iac])\\?\s{0,20}(.*)$", program, re.DOTALL)
    ) is not None:
        return ("" if found[1] in "ia" else program), found[2]
    return None, None


def _patch(command: Command) -> Iterator[Act]:
    if command.name == "git" and (not command.args or command.args[0] not in ("apply", "am")):
        return
    text = command.stdin
    if text is None and command.name == "apply_patch" and command.args:
        text = command.args[0]
    if text is None:
        return
    for touch in patched(text, command.cwd, command.name):
        yield Touch(touch.how, touch.path, touch.text if touch.text in text else command.text,
                    touch.content, touch.old, by=command.name)  # fmt: skip


def _program(command: Command, language: str) -> Iterator[Act]:
    for flag in ("-c", "-e", "-r", "--eval", "-pe", "-ne", "-E"):
        if flag in command.args[:-1] and (flag == "-c") == (language == "python"):
            place = command.args.index(flag)
            yield Code(language, command.args[place + 1], command.text)
            return
    if command.stdin is not None and (not command.operands or command.operands[0] == "-"):
        yield Code(language, command.stdin, command.text)


def _reached(command: Command) -> Iterator[Act]:
    sends = tuple(
        f"@{one}" if flag in _SENDS_FILES and not one.startswith(("@", "-")) else one
        for flag in _SENDING
        for one in _all_of(command, flag)
    )
    if any(one in ("@-", "-") for one in sends) or (
        command.upstream is not None and command.name in ("nc", "ncat", "netcat", "socat", "telnet")
    ):
        sends += (f"|{command.upstream.text}" if command.upstream is not None else "",)
    seen = False
    if command.name in ("curl", "wget", "aria2c"):
        for flag in ("-o", "-O", "--output", "--output-document"):
            if (out := command.option(flag)) and not out.startswith(("-", "http")):
                yield _touch(command, How.WRITE, out)
                break
        else:
            yield from _saved(command)
    for one in command.args:
        if (found := _URL.search(one)) is not None and one not in sends:
            seen = True
            yield Reach(host_of(found.group()), found.group(), command.text, sends, command.name)
    if seen:
        return
    for one in command.operands:
        found_host = _HOST.match(one)
        if found_host is not None and one not in sends and not one.isdigit():
            yield Reach(host_of("//" + one), one, command.text, sends, command.name)
            if command.name not in ("curl", "wget", "nmap", "dig", "nslookup", "host", "drill"):
                return


def _saved(command: Command) -> Iterator[Act]:
    """What is saved under the address's own name: all that wget gets, curl's with `-O`."""
    if command.name == "curl" and not command.has("O", "--remote-name"):
        return
    for one in command.operands:
        name = name_of(one.partition("?")[0].rstrip("/"))
        if name and "." in name and "//" in one:
            yield _touch(command, How.WRITE, name)


def _all_of(command: Command, flag: str) -> list[str]:
    values = []
    for place, one in enumerate(command.args):
        if one == flag and place + 1 < len(command.args):
            values.append(command.args[place + 1])
        elif flag.startswith("--") and one.startswith(f"{flag}="):
            values.append(one[len(flag) + 1 :])
        elif (
            len(flag) == 2 and len(one) > 2 and one.startswith(flag) and flag in ("-d", "-F", "-T")
        ):
            values.append(one[2:])
    return values


def host_of(url: str) -> str:
    """Give the host of an address, in lower case; empty where there is none."""
    try:
        return (urlsplit(url).hostname or "").lower().rstrip(".")
    except ValueError:
        return ""
