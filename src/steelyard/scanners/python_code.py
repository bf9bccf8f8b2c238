"""What a Python program would do, read off its syntax tree; it is never run.

Names of modules are followed (`import os as o`), strings that are put together from literals are
put together. What needs more is left alone: this reads scripts that an agent writes on one line.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from steelyard.scanners.acts import Act, Command, How, Reach, Touch
from steelyard.scanners.effects import host_of
from steelyard.scanners.shell.paths import name_of, resolved

MAX_CHARS: Final = 64 * 1024
_MAX_NODES: Final = 20_000
_RUN: Final = frozenset(
    {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn"}
)
_SPAWN: Final = frozenset(
    {"subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output",
     "subprocess.Popen", "os.execv", "os.execvp", "os.execl", "os.execlp", "os.spawnlp"}
)  # fmt: skip
_DELETE: Final = frozenset({"os.remove", "os.unlink", "os.rmdir", "shutil.rmtree", "os.removedirs"})
_COPY: Final = frozenset(
    {"shutil.copy", "shutil.copyfile", "shutil.move", "os.rename", "os.replace", "shutil.copy2",
     "shutil.copytree"}
)  # fmt: skip
_METHODS: Final = {
    "read_text": How.READ, "read_bytes": How.READ, "write_text": How.WRITE,
    "write_bytes": How.WRITE, "unlink": How.DELETE, "rmdir": How.DELETE, "chmod": How.MODE,
}  # fmt: skip
_CONNECTS: Final = (".urlopen", ".connect", ".connect_ex", ".create_connection")
_ADDRESS: Final = re.compile(r"https?://[\w.:-]+[^\s'\"]{0,200}")
_HTTP: Final = ("requests.", "httpx.", "urllib.request.", "aiohttp.", "http.client.")


@lru_cache(maxsize=256)
def tree_of(source: str) -> ast.Module | None:
    """Parse a program; None where it is none, or too large."""
    if len(source) > MAX_CHARS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what an agent wrote, not of ours
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def python_acts(source: str, text: str, cwd: str) -> Iterator[Act | str]:
    """Give what a program touches, reaches and runs; shell text that it runs comes as `str`.

    Args:
        source: the program.
        text: the evidence where the program's own line does not stand in it.
        cwd: the folder it runs in.
    """
    tree = tree_of(source)
    if tree is None:
        return
    reader = _Reader(source, text, cwd)
    for count, node in enumerate(ast.walk(tree)):
        if count > _MAX_NODES:
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            reader.note_import(node)
        elif isinstance(node, ast.Assign):
            reader.note_assignment(node)
    for count, node in enumerate(ast.walk(tree)):
        if count > _MAX_NODES:
            return
        if isinstance(node, ast.Call):
            yield from reader.call(node)


class _Reader:
    def __init__(self, source: str, text: str, cwd: str) -> None:
        self._lines, self._text, self._cwd = source.split("\n"), text, cwd
        self._modules: dict[str, str] = {}
        self._values: dict[str, str] = {}

    def note_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name in node.names:
            origin = name.name
            if isinstance(node, ast.ImportFrom):
                origin = f"{node.module or ''}.{name.name}"
            self._modules[name.asname or name.name.partition(".")[0]] = (
                origin if name.asname or isinstance(node, ast.ImportFrom)
                else name.name.partition(".")[0]
            )  # fmt: skip

    def note_assignment(self, node: ast.Assign) -> None:
        value = self._literal(node.value)
        if value is not None:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._values[target.id] = value

    def call(self, node: ast.Call) -> Iterator[Act | str]:
        name = self._name(node.func)
        first = self._literal(node.args[0]) if node.args else None
        line = self._line(node)
        if name in _RUN and first:
            yield first
        elif name in _SPAWN and node.args:
            yield from self._spawned(node, first, line)
        elif name in ("open", "io.open", "codecs.open", "os.open") and first is not None:
            yield from self._opened(node, first, line)
        elif name in _DELETE and first is not None:
            deep = name == "shutil.rmtree"
            yield self._touch(How.DELETE, first, line, name, deep=deep)
        elif name in _COPY and len(node.args) > 1:
            target = self._literal(node.args[1])
            if first is not None:
                yield self._touch(How.READ, first, line, name)
                if name in ("shutil.move", "os.rename", "os.replace"):
                    yield self._touch(How.DELETE, first, line, name, content=target)
            if target is not None:
                yield self._touch(How.WRITE, target, line, name)
        elif name in ("os.kill", "os.killpg") and len(node.args) > 1:
            yield Command("kill", (ast.unparse(node.args[0])[:100],), line, self._cwd,
                          via=("python",))  # fmt: skip
        elif name in ("os.chmod",) and first is not None:
            yield self._touch(How.MODE, first, line, name)
        elif name.startswith(_HTTP) or name.endswith(_CONNECTS):
            yield from self._reached(node, name, line)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            path = self._path(node.func.value)
            if path is not None:
                yield self._touch(_METHODS[node.func.attr], path, line, name, content=first)

    def _spawned(self, node: ast.Call, first: str | None, line: str) -> Iterator[Act | str]:
        if first is not None:
            yield first
            return
        argv = node.args[0]
        if isinstance(argv, ast.List | ast.Tuple):
            words = [self._literal(one) or "$_" for one in argv.elts[:100]]
            if words:
                yield Command(name_of(words[0]), tuple(words[1:]), line, self._cwd, via=("python",))

    def _opened(self, node: ast.Call, path: str, line: str) -> Iterator[Touch]:
        mode = self._literal(node.args[1]) if len(node.args) > 1 else None
        for keyword in node.keywords:
            if keyword.arg == "mode":
                mode = self._literal(keyword.value)
        mode = mode or "r"
        how = How.READ
        if "w" in mode or "x" in mode:
            how = How.WRITE
        elif "a" in mode or "+" in mode:
            how = How.APPEND
        yield self._touch(how, path, line, "open")

    def _reached(self, node: ast.Call, name: str, line: str) -> Iterator[Act]:
        sends = tuple(
            ast.unparse(one.value)[:500]
            for one in node.keywords
            if one.arg in ("data", "json", "files", "headers", "params", "content")
        )
        if len(node.args) > 1 and name.endswith((".post", ".put")):
            sends += (ast.unparse(node.args[1])[:500],)
        for one in node.args[:2]:
            value = self._literal(one)
            if value is None and not isinstance(one, ast.Tuple):
                written = ast.unparse(one)[:1000]
                if (found := _ADDRESS.search(written)) is not None:
                    yield Reach(
                        host_of(found.group()), found.group(), line, (*sends, written), name
                    )
                continue
            if value is None and isinstance(one, ast.Tuple) and one.elts:
                value = self._literal(one.elts[0])
                value = f"//{value}" if value else None
            if value and name.endswith(".connect") and value.startswith("/"):
                yield self._touch(How.READ, value, line, name)  # a socket of this machine
            elif value and ("//" in value or name.endswith("HTTPConnection")):
                url = value if "//" in value else f"//{value}"
                yield Reach(host_of(url), value, line, sends, name)

    def _touch(
        self, how: How, path: str, line: str, by: str, *, content: str | None = None,
        deep: bool = False,
    ) -> Touch:  # fmt: skip
        return Touch(how, resolved(path, self._cwd), line, content, None, deep, f"python:{by}")

    def _line(self, node: ast.Call) -> str:
        """Give the program's line, where it stands in the evidence or in the step as it is."""
        if 0 < node.lineno <= len(self._lines):
            return self._lines[node.lineno - 1].strip()[:500] or self._text
        return self._text

    def _name(self, node: ast.expr) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < 10:
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            parts.append(self._modules.get(node.id, node.id))
        elif isinstance(node, ast.Call):
            inner = node.func
            if isinstance(inner, ast.Name) and inner.id == "__import__" and node.args:
                parts.append(self._literal(node.args[0]) or "?")
            else:
                parts.append("?")
        return ".".join(reversed(parts))

    def _path(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Call) and self._name(node.func) in ("Path", "pathlib.Path"):
            return self._literal(node.args[0]) if node.args else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            left, right = self._path(node.left), self._literal(node.right)
            return None if left is None or right is None else f"{left}/{right}"
        return self._values.get(node.id) if isinstance(node, ast.Name) else None

    def _literal(self, node: ast.expr, depth: int = 0) -> str | None:
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            return self._values.get(node.id)
        if depth > 20:
            return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self._literal(node.left, depth + 1), self._literal(node.right, depth + 1)
            return None if left is None or right is None else left + right
        if isinstance(node, ast.JoinedStr):
            return "".join(
                one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else "$_"
                for one in node.values
            )
        if isinstance(node, ast.Call):
            name = self._name(node.func)
            if name in ("os.path.join", "posixpath.join"):
                parts = [self._literal(one, depth + 1) or "$_" for one in node.args]
                return "/".join(parts)
            if name in ("os.path.expanduser", "str", "Path", "pathlib.Path") and node.args:
                return self._literal(node.args[0], depth + 1)
        return self._path(node)
