"""Run an agent program of the table in the environment; the model reaches it by the gateway.

What it asked the model is recorded at the gateway. Its own log is read beside that: steps and
figures as it tells them stand in the last step, never in place of what was counted.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from steelyard.components.environment import ExecResult, Mount, Session
from steelyard.components.gateway import ModelAccess
from steelyard.components.harness import Harness, HarnessContext, HarnessResult, HarnessTraits
from steelyard.components.installed_agents import default_data_dir
from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.config.errors import SteelyardError
from steelyard.harnesses.cli_agent import cache
from steelyard.harnesses.cli_agent.agent import Agent, Place
from steelyard.harnesses.cli_agent.log import MAX_LOG_BYTES, AgentLog
from steelyard.harnesses.cli_agent.params import AgentParams, params_for
from steelyard.harnesses.cli_agent.program import (
    find_program,
    install_command,
    other_version,
    unstartable,
)
from steelyard.harnesses.cli_agent.report import issues_of, last_step
from steelyard.harnesses.command.running import run_program
from steelyard.harnesses.command.words import prompt_of, unusable_word

HOME: Final = "/tmp/steelyard-agent"  # noqa: S108 — a folder of the session
BESIDE: Final = ".steelyard-agent"
"""In the working folder, where a session has no other; taken away before anything is measured."""
MOUNTED_BELOW: Final = "/opt/steelyard"
_ASIDE_S: Final = 60.0
_CUT_S: Final = 10.0
"""For reading the log of an agent whose time is over."""
_NEWEST: Final = """IFS=
newest=$(ls -td -- $1 2>/dev/null | head -n 1)
[ -f "$newest" ] && head -c "$2" "$newest"
"""


@dataclass(frozen=True, slots=True)
class _Ready:
    argv: tuple[str, ...]
    env: dict[str, str]
    stdin: bytes


class CliAgent(Harness):
    """An agent program; a subclass names its entry: `agent = Agent(…)`."""

    version: ClassVar[str] = "1"
    traits: ClassVar[HarnessTraits] = HarnessTraits(
        calls_model=True, runs_model_code=True, uses_gateway=True
    )
    agent: ClassVar[Agent]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "agent" in cls.__dict__:
            cls.id = cls.agent.id
            cls.Params = params_for(cls.agent)
            cls.protocols = cls.agent.protocols

    def __init__(self, params: BaseModel) -> None:
        super().__init__(params)
        if not isinstance(params, AgentParams):
            raise TypeError(f"{self.id} takes AgentParams, not {type(params).__name__}")
        self._params = params
        # Of this instance: what trajectories name is the program's version, with ours behind it.
        vars(self)["version"] = f"{params.version}+{type(self).version}"
        self._folder: Path | None = None
        self._seen_versions: set[str] = set()
        """Environments whose own program has the version that is asked for."""

    def generation_params(self, filled: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out how long installing the program may take."""
        return {name: value for name, value in filled.items() if name != "install_timeout_seconds"}

    # -- installing ---------------------------------------------------------------------------

    @property
    def wanted(self) -> cache.Wanted:
        """What is to be installed, and where."""
        data_dir = (self.data_dir or default_data_dir()).absolute()
        return cache.Wanted(self.agent, self._params.version, data_dir)

    def lacking(self) -> str | None:
        """Say that the program is not installed, with the command that does it."""
        if self._params.install == "environment" or cache.is_installed(self.wanted):
            return None
        return (
            f"its program, version {self._params.version}, is not installed: "
            f"{install_command(self.wanted, self.data_dir)}"
        )

    def installation(self) -> Callable[[], str] | None:
        """Give what installs the program; None where the environment is to bring it."""
        return self.install_program if self.lacking() is not None else None

    def install_program(self) -> str:
        """Install the program. Blocking, minutes.

        Raises:
            Fault: it cannot be installed.
        """
        wanted = self.wanted
        folder = cache.install(wanted, timeout_s=self._params.install_timeout_seconds)
        return f"{wanted.agent.id} {wanted.version}, into {folder}"

    async def prepare(self) -> None:
        """Find the installed program.

        Raises:
            AttemptFault: it is not installed, or not what was installed.
        """
        if self._params.install == "environment":
            return
        try:
            folder = await asyncio.to_thread(cache.installed, self.wanted)
        except SteelyardError as error:
            raise AttemptFault(
                IssueCode.DEPENDENCY_MISSING, str(error), request_fault=True
            ) from error
        if folder is None:
            raise AttemptFault(
                IssueCode.DEPENDENCY_MISSING,
                f"{self.id}: {self.lacking()}",
                request_fault=True,
            )
        self._folder = folder

    def mounts(self) -> Sequence[Mount]:
        """Name the folder that the program was installed into."""
        if self._folder is None:
            return ()
        return (Mount(self._folder, f"{MOUNTED_BELOW}/{self.id}"),)

    # -- running ------------------------------------------------------------------------------

    async def run(self, context: HarnessContext) -> HarnessResult:
        """Let the agent work on the task's text in the session's folder.

        Raises:
            AttemptFault: it cannot be started, is another version, or cannot be handed the text.
        """
        access = await context.model_access()
        session = await context.session()
        with context.timer.waiting():
            place = self._place(context, session, access, await _home_of(session))
            await self._make_home(session, place)
            program = await self._program(session, place)
            ready = self._ready(place, program)
        ended = await run_program(
            session,
            partial(
                session.exec,
                ready.argv,
                stdin=ready.stdin,
                env=ready.env,
                max_output_bytes=self._params.max_output_bytes,
            ),
            context.timer,
            timeout_s=self._params.timeout_seconds,
            on_cut=partial(self._keep, context, session, place),
        )
        with context.timer.waiting():
            if why := unstartable(self.agent, ended, in_image=not place.agent):
                raise AttemptFault(IssueCode.CONFIGURATION, why, request_fault=True)
            data, is_whole = await self._log(session, place, _ASIDE_S)
            log = self.agent.read_log(data, ended.stdout)
            context.step(last_step(self.agent, ended, log))
            if place.home != HOME:
                await session.exec(["rm", "-rf", place.home], timeout_s=_ASIDE_S)
        issues = issues_of(
            self.agent, ended, log, has_log=bool(data), is_whole=is_whole,
            timeout_s=self._params.timeout_seconds, max_turns=self._params.max_turns,
        )  # fmt: skip
        return HarnessResult(log.answer, issues=issues, details=self._details(log))

    async def _keep(
        self, context: HarnessContext, session: Session, place: Place, ended: ExecResult
    ) -> None:
        """Keep what an agent that was cut off had done and said: its time is over."""
        data, _is_whole = await self._log(session, place, _CUT_S)
        log = self.agent.read_log(data, ended.stdout)
        context.step(last_step(self.agent, ended, log))
        context.keep_answer(log.answer)

    def _place(
        self, context: HarnessContext, session: Session, access: ModelAccess, home: str
    ) -> Place:
        return Place(
            agent="" if self._folder is None else f"{MOUNTED_BELOW}/{self.id}",
            home=home,
            workdir=session.workdir,
            prompt=prompt_of(context.input.messages, with_system=True),
            model=access.model_id,
            url=access.url,
            token=access.token,
            turns=self._params.max_turns,
            web_tools=self._params.web_tools,
        )

    async def _make_home(self, session: Session, place: Place) -> None:
        """Make a home that is the session's own user's, with the agent's settings in it."""
        files = dict(self.agent.files(place)) if self.agent.files is not None else {}
        files["prompt.txt"] = place.prompt
        # By a program of the session, so that its user may write there as well.
        folders = sorted({posixpath.dirname(f"{place.home}/{name}") for name in files})
        made = await session.exec(["mkdir", "-p", *folders], timeout_s=_ASIDE_S)
        if made.exit_code != 0:
            raise AttemptFault(
                IssueCode.CONFIGURATION,
                f"the agent's home {place.home} cannot be made: {made.stderr_text.strip()[:300]}",
            )
        for name, content in files.items():
            await session.write_file(f"{place.home}/{name}", content.encode("utf-8", "replace"))

    async def _program(self, session: Session, place: Place) -> tuple[str, ...]:
        if self._folder is not None:
            try:
                return find_program(self.agent, self._folder, place)
            except SteelyardError as error:
                raise AttemptFault(
                    IssueCode.DEPENDENCY_MISSING, str(error), request_fault=True
                ) from error
        words = self.agent.own_program
        known = str(session.description.as_json())
        if known not in self._seen_versions:
            asked = [*words, *self.agent.version_words]
            said = await session.exec(asked, env={"HOME": place.home}, timeout_s=_ASIDE_S)
            if why := other_version(self.agent, self._params.version, said):
                raise AttemptFault(IssueCode.CONFIGURATION, why, request_fault=True)
            self._seen_versions.add(known)
        return words

    def _ready(self, place: Place, program: tuple[str, ...]) -> _Ready:
        agent = self.agent
        words = [*agent.arguments, *(agent.turn_arguments if place.turns is not None else ())]
        argv = (*program, *map(place.filled, words), *self._params.args)
        env = {
            "HOME": place.home,
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
            **{name: place.filled(word) for name, word in agent.variables.items()},
            **self._params.env,
        }
        if why := unusable_word([*argv, *env.values()]):
            raise AttemptFault(
                IssueCode.CONFIGURATION,
                f"the task's text {why}; {agent.id} takes it as a word of its command line",
            )
        stdin = place.prompt.encode("utf-8", "replace") if agent.prompt_on_stdin else b""
        return _Ready(argv, env, stdin)

    async def _log(self, session: Session, place: Place, within_s: float) -> tuple[bytes, bool]:
        """Read the newest log, as far as is read of one; False where it is longer."""
        pattern = place.filled(self.agent.log)
        found = await session.exec(
            ["sh", "-c", _NEWEST, "sh", pattern, str(MAX_LOG_BYTES + 1)],
            timeout_s=within_s,
            max_output_bytes=MAX_LOG_BYTES + 1,
        )
        return found.stdout[:MAX_LOG_BYTES], len(found.stdout) <= MAX_LOG_BYTES

    def _details(self, log: AgentLog) -> dict[str, Any]:
        return {
            "agent": self.agent.id,
            "agent_version": self._params.version,
            "reported": log.reported.as_json(),
        }


async def _home_of(session: Session) -> str:
    """Give the agent's home: outside of the working folder, where the session has such a place."""
    try:
        await session.read_file(f"{HOME}/prompt.txt")
    except FileNotFoundError:
        return HOME
    except ValueError:  # it leads out of the session
        return f"{session.workdir}/{BESIDE}"
    return HOME  # of an earlier stage
