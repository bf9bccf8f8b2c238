"""Run any program of the environment as an agent; the model reaches it through the gateway.

What it asked the model is recorded at the gateway; its own last words and logs are added here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from pydantic import BaseModel

from steelyard.components.environment import ExecResult, Session
from steelyard.components.gateway import ModelAccess
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits, Step
from steelyard.components.issues import AttemptFault, Issue, IssueCode, Phase
from steelyard.harnesses.command.extracting import last_match
from steelyard.harnesses.command.params import CommandParams
from steelyard.harnesses.command.running import run_program
from steelyard.harnesses.command.words import (
    MODEL_FIELDS,
    fields_of,
    filled,
    prompt_of,
    system_of,
    tail,
    unusable_word,
)
from steelyard.harnesses.program_end import fate, last_words

OUTSIDE: Final = "/tmp/steelyard-agent"  # noqa: S108 — a folder of the session
BESIDE: Final = ".steelyard-agent"
"""In the working folder, where a session has no other."""
SHOWN_BYTES: Final = 32 * 1024
LOG_BYTES: Final = 128 * 1024
MAX_LOGS: Final = 16

_READ_BYTES: Final = 64 * 1024 * 1024
_ASIDE_S: Final = 60.0
_FIND: Final = 'for f in $1; do [ -f "$f" ] && printf "%s\\0" "$f"; done'


@dataclass(frozen=True, slots=True)
class _Ready:
    """A program whose words, variables and input are complete."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    stdin: bytes
    values: Mapping[str, str]
    """What stands for the fields of other words."""


class Command(Harness):
    """Any program: argv or script; its answer from a stream, a file or a command."""

    id: ClassVar[str] = "command"
    version: ClassVar[str] = "1"
    traits: ClassVar[HarnessTraits] = HarnessTraits(
        calls_model=True, runs_model_code=True, uses_gateway=True, model_optional=True
    )
    Params: ClassVar[type[BaseModel]] = CommandParams

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        if not isinstance(params, CommandParams):
            raise TypeError(f"command takes CommandParams, not {type(params).__name__}")
        self._params = params
        words = [*(params.run or ()), *params.env.values()]
        words += [word for command in params.setup for word in command]
        words += [*(params.answer.command or ()), *params.log, params.answer.file or ""]
        self._asked = fields_of(words)

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Run the program on the task's text; what it printed, wrote or answers is the answer.

        Raises:
            AttemptFault: the program cannot be started, a set-up command failed, or the text
                cannot be handed over as asked.
        """
        params = self._params
        access = await self._access(context)
        session = await context.session()
        with context.timer.waiting():
            home = await self._home(session, context)
            for source in params.sources:
                await session.upload(source, f"{home}/files/{source.name}")
            ready = self._ready(context, session, home, access)
            await self._set_up(session, ready)
        if access is None:
            context.step(Step("user", ready.values["prompt"]))
        ended = await run_program(
            session,
            partial(
                session.exec,
                ready.argv,
                stdin=ready.stdin,
                env=ready.env,
                cwd=params.cwd,
                max_output_bytes=params.max_output_bytes,
            ),
            context.timer,
            timeout_s=params.timeout_seconds,
            on_cut=partial(self._keep, context, session, ready),
        )
        with context.timer.waiting():
            context.step(await self._last_step(session, ready, ended))
            answer = await self._answer(session, ready, ended)
            if home == BESIDE:
                await session.exec(["rm", "-rf", BESIDE], timeout_s=_ASIDE_S)
        return HarnessResult(answer, issues=self._issues(ready, ended))

    async def _access(self, context: HarnessContext) -> ModelAccess | None:
        if context.has_model:
            return await context.model_access()
        if wanted := sorted(self._asked & MODEL_FIELDS):
            raise AttemptFault(
                IssueCode.CONFIGURATION,
                f"the command asks for {{{wanted[0]}}}, but the request's model id is none",
                request_fault=True,
            )
        return None

    async def _home(self, session: Session, context: HarnessContext) -> str:
        """Make a home with the prompt in it, outside of the working folder where there is a place.

        What a program leaves in its home is then no part of what is measured.
        """
        messages = context.input.messages
        prompt = prompt_of(messages, with_system=self._params.system == "prepend")
        for home in (OUTSIDE, BESIDE):
            try:
                await session.write_file(f"{home}/prompt.txt", _bytes(prompt))
                await session.write_file(f"{home}/system.txt", _bytes(system_of(messages)))
            except ValueError:  # it leads out of the session
                if home == BESIDE:
                    raise
                continue
            return home
        raise AssertionError("unreachable")  # pragma: no cover

    def _ready(
        self, context: HarnessContext, session: Session, home: str, access: ModelAccess | None
    ) -> _Ready:
        params, messages = self._params, context.input.messages
        folder = home if home.startswith("/") else f"{session.workdir}/{home}"
        prompt = prompt_of(messages, with_system=params.system == "prepend")
        values = {
            "prompt": prompt,
            "prompt_file": f"{folder}/prompt.txt",
            "system": system_of(messages),
            "system_file": f"{folder}/system.txt",
            "files": f"{folder}/files",
            "workdir": session.workdir,
            "home": folder,
        }
        env = {
            "HOME": folder,
            "STEELYARD_PROMPT_FILE": values["prompt_file"],
            "STEELYARD_SYSTEM_FILE": values["system_file"],
        }
        if access is not None:
            values |= {"model": access.model_id, "url": access.url, "token": access.token}
            env |= access.variables()
        if params.prompt == "environment":
            env["STEELYARD_PROMPT"] = prompt
        env |= {name: filled(word, values) for name, word in params.env.items()}
        if params.run is not None:
            argv = tuple(filled(word, values) for word in params.run)
        else:
            argument = [prompt] if params.prompt == "argument" else []
            argv = (params.shell, "-c", params.script or "", params.shell, *argument)
        if why := unusable_word([*argv, *env.values()]):
            raise AttemptFault(
                IssueCode.CONFIGURATION,
                f"the task's text {why}; write `prompt: stdin` or `prompt: file` for the command",
            )
        stdin = _bytes(prompt) if params.prompt == "stdin" else b""
        return _Ready(argv, env, stdin, values)

    async def _set_up(self, session: Session, ready: _Ready) -> None:
        for command in self._params.setup:
            words = [filled(word, ready.values) for word in command]
            ended = await session.exec(
                words,
                env=ready.env,
                cwd=self._params.cwd,
                timeout_s=self._params.setup_timeout_seconds,
            )
            if ended.exit_code != 0 or ended.timed_out:
                raise AttemptFault(
                    IssueCode.CONFIGURATION,
                    f"the set-up command {words[0]} {fate(ended)}: {last_words(ended)}",
                )

    async def _last_step(
        self, session: Session, ready: _Ready, ended: ExecResult, *, with_logs: bool = True
    ) -> Step:
        """Put the program's end, what it printed and its logs into a step."""
        extra: dict[str, object] = {
            "exit_code": ended.exit_code,
            "duration_s": round(ended.duration_s, 3),
            "stdout": tail(ended.stdout, SHOWN_BYTES),
            "stderr": tail(ended.stderr, SHOWN_BYTES),
        }
        if self._params.log and with_logs:
            extra["logs"] = await self._logs(session, ready)
        return Step("system", f"the program {fate(ended)}", extra)

    async def _keep(
        self, context: HarnessContext, session: Session, ready: _Ready, ended: ExecResult
    ) -> None:
        """Keep what a program that was cut off had printed, or written into its answer's file.

        No other program is run: the time is over.
        """
        context.step(await self._last_step(session, ready, ended, with_logs=False))
        if self._params.answer.command is None:
            with suppress(AttemptFault):  # a pattern that takes too long finds nothing
                context.keep_answer(await self._answer(session, ready, ended))

    async def _logs(self, session: Session, ready: _Ready) -> dict[str, str]:
        paths: list[str] = []
        for pattern in self._params.log:
            name = filled(pattern, ready.values)
            if not any(sign in name for sign in "*?["):
                paths.append(name)
                continue
            found = await session.exec(["sh", "-c", _FIND, "sh", name], timeout_s=_ASIDE_S)
            paths += [path for path in found.stdout_text.split("\0") if path]
        logs: dict[str, str] = {}
        left = LOG_BYTES
        for path in paths[:MAX_LOGS]:
            try:
                data = await session.read_file(path, max_bytes=_READ_BYTES)
            except (FileNotFoundError, ValueError) as error:
                logs[path] = f"[not read: {error or 'there is none'}]"
                continue
            logs[path] = tail(data, left) if left else f"[{len(data)} bytes left out]"
            left = max(0, left - len(data))
        return logs

    async def _answer(self, session: Session, ready: _Ready, ended: ExecResult) -> str | None:
        where = self._params.answer
        found: str | None
        if where.file is not None:
            try:
                data = await session.read_file(filled(where.file, ready.values))
                found = data.decode("utf-8", "replace")
            except (FileNotFoundError, ValueError):
                found = None
        elif where.command is not None:
            words = [filled(word, ready.values) for word in where.command]
            said = await session.exec(
                words, env=ready.env, cwd=self._params.cwd, timeout_s=_ASIDE_S
            )
            found = said.stdout_text if said.exit_code == 0 else None
        else:
            found = ended.stderr_text if where.stream == "stderr" else ended.stdout_text
        if found is not None and where.extract is not None:
            found = await last_match(where.extract, found)
        return found.strip() if found is not None and where.trim else found

    def _issues(self, ready: _Ready, ended: ExecResult) -> tuple[Issue, ...]:
        """Say how the program fell short.

        Raises:
            AttemptFault: it could not even be started.
        """
        issues = []
        program = ready.argv[0]
        if ended.timed_out:
            text = f"the command's {self._params.timeout_seconds:g} s ran out"
            issues.append(Issue.of(IssueCode.AGENT_TIMED_OUT, Phase.RUN, text))
        elif ended.exit_code not in self._params.allow_exit_codes or ended.stopped_by:
            if ended.exit_code in (126, 127) and not ended.stdout:
                raise AttemptFault(
                    IssueCode.CONFIGURATION,
                    f"the program {program!r} cannot be run in the environment: "
                    + last_words(ended),
                    request_fault=True,
                )
            text = f"{program} {fate(ended)}: {last_words(ended)}"
            issues.append(Issue.of(IssueCode.AGENT_FAILED, Phase.RUN, text))
        if ended.truncated:
            most = self._params.max_output_bytes
            text = f"the program wrote more than {most} bytes; the rest is not kept"
            issues.append(Issue.of(IssueCode.OUTPUT_TRUNCATED, Phase.RUN, text))
        return tuple(issues)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
