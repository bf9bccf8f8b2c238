"""What people may ask of `command`: the program, its prompt, its answer, its bounds."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    StringConstraints,
    field_validator,
    model_validator,
)

Word = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
Words = Annotated[tuple[Word, ...], Field(min_length=1)]
Path = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$")]

_NAME = re.compile(r"[^=\x00]+")


class AnswerParams(BaseModel):
    """Where the answer is, unless the task says it: a stream, a file, or what a command prints."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    stream: Literal["stdout", "stderr"] | None = None
    """What the program wrote there; `stdout` by default."""
    file: Path | None = None
    """A file, relative to the working folder; none is no answer."""
    command: Words | None = None
    """Run when the program has ended; no answer where it fails."""
    extract: str | None = None
    """A regular expression: group 1 (all of it without groups) of its last match is the answer."""
    trim: bool = True
    """White space around the answer is left out."""

    @field_validator("extract")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise ValueError(f"not a regular expression: {error}") from error
        return pattern

    @model_validator(mode="after")
    def _one_place(self) -> AnswerParams:
        if sum(place is not None for place in (self.stream, self.file, self.command)) > 1:
            raise ValueError("write one of stream, file and command")
        return self


class CommandParams(BaseModel):
    """`harness: {id: command, …}`.

    In words and variables stand, if wanted: {prompt} {prompt_file} {system} {system_file} {model}
    {url} {token} {workdir} {home}; {{prompt}} is a literal {prompt}.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    run: Words | None = None
    """The program and its arguments; no shell."""
    script: Path | None = None
    """Text for a shell instead; nothing is replaced in it, `$STEELYARD_PROMPT_FILE` is set."""
    shell: Path = "sh"
    """What runs `script`."""
    prompt: Literal["stdin", "argument", "file", "environment"] = "stdin"
    """How the task's text is handed over: on standard input; where {prompt} stands in `run` (`$1`
    of a script); as {prompt_file} (`$STEELYARD_PROMPT_FILE`); as `$STEELYARD_PROMPT`."""
    system: Literal["prepend", "separate"] = "prepend"
    """System messages: before the prompt, or only as {system} and `$STEELYARD_SYSTEM_FILE`."""
    env: dict[str, Word] = Field(default_factory=dict)
    """Variables of the program, over those that name endpoint and token."""
    setup: tuple[Words, ...] = ()
    """Commands before the program, not on the agent's clock; one that fails is no agent's fault."""
    setup_timeout_seconds: PositiveFloat = 600
    """For each of them."""
    cwd: Path | None = None
    """Where it starts, relative to the working folder."""
    timeout_seconds: PositiveFloat | None = None
    """Of the program by the clock on the wall, waiting for the model included; what it printed is
    kept. `execution.run_timeout_seconds` leaves waiting out."""
    max_output_bytes: PositiveInt = 10 * 1024 * 1024
    """Kept of each stream; the rest is read and dropped."""
    answer: AnswerParams = AnswerParams()
    """Where its answer is."""
    log: tuple[Path, ...] = ()
    """Its own logs, with * and ? for names; their last 128 KiB go into the trajectory."""
    allow_exit_codes: Annotated[tuple[int, ...], Field(min_length=1)] = (0,)
    """Any other is ERROR `agent_failed`."""

    @field_validator("env")
    @classmethod
    def _names(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a variable")
        return env

    @field_validator("log", mode="before")
    @classmethod
    def _one_log(cls, log: Any) -> Any:
        return (log,) if isinstance(log, str) else log

    @model_validator(mode="after")
    def _fits(self) -> CommandParams:
        if (self.run is None) == (self.script is None):
            raise ValueError("write one of run (a list of words) and script (text for a shell)")
        if self.run is None:
            return self
        if not self.run[0]:
            raise ValueError("run names no program")
        words = (*self.run, *self.env.values())
        for way, field in (("argument", "{prompt}"), ("file", "{prompt_file}")):
            if self.prompt == way and not any(field in word for word in words):
                raise ValueError(f"prompt: {way} needs {field} among the words of run")
        return self
