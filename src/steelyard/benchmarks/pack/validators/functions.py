"""The validator `python`: a function of the pack, run in the scorer's session.

Its file never comes into this process but as text, and reaches the session on standard input, so
that it lies in no folder an agent could see or change. What the function prints is kept as words;
its verdict comes back beside a random word that stays unread in the pipe until the function has
returned. Trust is that of `command`: what the function imports of the agent's work runs beside it.
"""

from __future__ import annotations

import ast
import math
import secrets
import warnings
from dataclasses import dataclass
from typing import ClassVar, Final

import orjson

from steelyard.benchmarks.code_runner import PYTHON_NAMES
from steelyard.benchmarks.pack.document import shown_path
from steelyard.benchmarks.pack.paths import PathProblem, file_in
from steelyard.benchmarks.pack.schema_validators.programs import PythonSpec
from steelyard.benchmarks.pack.validators.contract import Validator, Verdict, Work
from steelyard.benchmarks.pack.validators.making import Making
from steelyard.components.environment import ExecResult, Session
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.config.errors import Problem, Where
from steelyard.config.validation import nearest

_MAX_SOURCE_BYTES: Final = 1024 * 1024
_OUTPUT_BYTES: Final = 256 * 1024
_SHOWN_CHARS: Final = 1000
_ARGUMENTS: Final = ("answer", "case", "files", "steps")

_RUNNER: Final = r"""
import os, sys
def main():
    word_fd, out_fd = os.dup(0), os.dup(1)
    head = b""
    while not head.endswith(b"\n"):
        byte = os.read(word_fd, 1)
        if not byte:
            os._exit(70)
        head += byte
    left, parts = int(head), []
    while left:
        part = os.read(word_fd, min(left, 1 << 16))
        if not part:
            os._exit(70)
        parts.append(part)
        left -= len(part)
    import json, traceback, types
    job = json.loads(b"".join(parts))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    write, read, leave, dumps = os.write, os.read, os._exit, json.dumps
    write(out_fd, (job["ready"] + "\n").encode())
    files = {}
    for name in job["files"]:
        path = os.path.join(os.getcwd(), name)
        if os.path.lexists(path):
            files[name] = path
    try:
        module = types.ModuleType("validator")
        module.__file__ = job["name"]
        sys.modules["validator"] = module
        run = exec
        run(compile(job["source"], job["name"], "exec"), module.__dict__)
        values = [job["answer"], job["case"], files, job["steps"]][: job["count"]]
        result = module.__dict__[job["function"]](*values)
        reason = None
        if type(result) is dict:
            reason, result = result.get("reason"), result.get("value")
        if type(result) not in (bool, int, float):
            said = {"fault": "it returned %s, not a bool or a number" % type(result).__name__}
        else:
            reason = None if reason is None else str(reason)[:2000]
            said = {"value": repr(float(result)), "reason": reason}
    except BaseException as error:
        at = ""
        try:
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__)
                     if f.filename == job["name"]]
            at = " at line %d" % lines[-1] if lines else ""
            words = "%s: %s" % (type(error).__name__, str(error)[:500])
        except BaseException:
            words = type(error).__name__
        said = {"fault": "it raised %s%s" % (words, at)}
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass
    text = b"\n" + read(word_fd, 256) + b" " + dumps(said).encode() + b"\n"
    while text:
        text = text[write(out_fd, text):]
    leave(0)
main()
"""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the pack, as text."""

    file: str
    """As the pack names it."""
    name: str
    source: str
    arguments: int
    """How many of `answer, case, files, steps` it takes."""


class Python(Validator):
    """A function of the pack says what the work is worth."""

    uses_session: ClassVar[bool] = True

    def __init__(self, name: str, spec: PythonSpec, function: Function) -> None:
        super().__init__(name, spec)
        self.is_scalar = True
        self.reads_steps = function.arguments > _ARGUMENTS.index("steps")
        self._function = function
        self._files, self._timeout_s = tuple(spec.files or ()), spec.timeout_seconds

    async def verdict(self, work: Work) -> Verdict:
        """Run the function on plain data.

        Raises:
            AttemptFault: SCORER_CRASHED where it raises, or returns what is no value from 0 to 1;
                SCORER_TIMED_OUT where it takes too long. Neither is ever a zero.
        """
        session = await work.context.session()
        word, ready = secrets.token_hex(16), secrets.token_hex(8)
        job = self._job(work, ready)
        stdin = b"%d\n" % len(job) + job + word.encode()
        result = await self._run(session, stdin, ready)
        first, _, rest = result.stdout_text.partition("\n")
        if first != ready:
            raise self._not_started(result)
        if result.timed_out:
            message = f"{self._called} did not end within {self._timeout_s:g} s"
            raise AttemptFault(IssueCode.SCORER_TIMED_OUT, message)
        said = next((line for line in rest.split("\n") if line.startswith(f"{word} ")), None)
        printed = result.stderr_text.strip()[-_SHOWN_CHARS:]
        if said is None:
            ending = f"{self._called} ended the process (exit code {result.exit_code})"
            raise self._crashed(ending, printed)
        found = orjson.loads(said.removeprefix(f"{word} "))
        if "fault" in found:
            none = " (`answer` was None: the agent gave none)" if work.answer is None else ""
            raise self._crashed(f"{self._called}: {found['fault']}{none}", printed)
        value = float(found["value"])
        if not (math.isfinite(value) and 0 <= value <= 1):
            raise self._crashed(f"{self._called} returned {value:g}: a value is from 0 to 1", "")
        reason = found["reason"] or (printed if value < 1 else "") or None
        return Verdict(value, reason)

    @property
    def _called(self) -> str:
        return f"{self._function.file}:{self._function.name}"

    def _job(self, work: Work, ready: str) -> bytes:
        function = self._function
        steps = [step.as_json() for step in work.context.steps] if function.arguments > 3 else []
        job = {
            "ready": ready,
            "name": function.file,
            "function": function.name,
            "source": function.source,
            "count": function.arguments,
            "answer": work.answer,
            "case": dict(work.fields),
            "files": self._files,
            "steps": steps,
        }
        try:
            return orjson.dumps(job)
        except TypeError:  # lone surrogates, as a JSON-speaking endpoint may send them
            import json

            return json.dumps(job, default=str).encode()

    async def _run(self, session: Session, stdin: bytes, ready: str) -> ExecResult:
        for name in PYTHON_NAMES:
            result = await session.exec(
                [name, "-I", "-B", "-X", "utf8", "-c", _RUNNER],
                stdin=stdin,
                timeout_s=self._timeout_s,
                max_output_bytes=_OUTPUT_BYTES,
            )
            if result.exit_code != 127 or ready in result.stdout_text:
                break
        return result

    def _not_started(self, result: ExecResult) -> AttemptFault:
        if result.timed_out:
            message = f"Python did not start for {self._called} within {self._timeout_s:g} s"
            return AttemptFault(IssueCode.SCORER_TIMED_OUT, message)
        missing = "there is no Python" if result.exit_code == 127 else "Python does not start"
        said = result.stderr_text.strip()[-500:]
        message = f"{missing} in the scorer's environment (exit code {result.exit_code})"
        return self._crashed(message, said)

    @staticmethod
    def _crashed(message: str, said: str) -> AttemptFault:
        return AttemptFault(IssueCode.SCORER_CRASHED, f"{message}{': ' + said if said else ''}")


def make_python(making: Making, spec: PythonSpec) -> Python:
    """Make one; the file is parsed, never run."""
    file, _, name = spec.run.rpartition(":")
    return Python(making.name, spec, _function(making, file, name))


def _function(making: Making, file: str, name: str) -> Function:
    nothing = Function(file, name, "", 3)
    try:
        path = file_in(making.root, file)
    except PathProblem:
        return nothing  # said where the paths are looked up
    if path.stat().st_size > _MAX_SOURCE_BYTES:
        making.problem(f"{file} is larger than {_MAX_SOURCE_BYTES} bytes", "run")
        return nothing
    try:
        source = path.read_text("utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, file)
    except SyntaxError as error:
        where = Where(shown_path(path), error.lineno, error.offset)
        making.templates.problems.append(Problem(f"not Python: {error.msg}", where))
        return nothing
    except (UnicodeError, ValueError, RecursionError, MemoryError) as error:
        making.problem(f"{file} cannot be read as Python: {type(error).__name__}", "run")
        return nothing
    found = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
    if name not in found:
        near = nearest(name, list(found))
        is_async = any(isinstance(p, ast.AsyncFunctionDef) and p.name == name for p in tree.body)
        remedy = f"did you mean {near}?" if near else f"write def {name}({', '.join(_ARGUMENTS)})"
        if is_async:
            remedy = "write a plain function, not an async one"
        making.problem(f"{file} defines no function {name}", "run", remedy=remedy)
        return nothing
    arguments = _count_of(found[name].args)
    if arguments is None:
        where = Where(shown_path(path), found[name].lineno, found[name].col_offset + 1)
        message = f"{name} is called as {name}({', '.join(_ARGUMENTS)}), or with fewer of them"
        making.templates.problems.append(Problem(message, where))
        return nothing
    return Function(file, name, source, arguments)


def _count_of(arguments: ast.arguments) -> int | None:
    """Tell how many arguments a function is given; None where it asks for others."""
    names = [*arguments.posonlyargs, *arguments.args]
    most = len(_ARGUMENTS)
    if len(names) - len(arguments.defaults) > most or None in arguments.kw_defaults:
        return None
    return most if arguments.vararg is not None else min(len(names), most)
