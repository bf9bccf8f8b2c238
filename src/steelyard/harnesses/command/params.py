"""What people may ask of `command`: the program, its prompt, its answer, its bounds."""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    StringConstraints,
    ValidationInfo,
    computed_field,
    field_serializer,
    field_validator,
    model_validator,
)

from steelyard.components.path_params import WrittenPath
from steelyard.config.validation import FieldFault

Word = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
Words = Annotated[tuple[Word, ...], Field(min_length=1)]
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$")]

_NAME = re.compile(r"[^=\x00]+")


class AnswerParams(BaseModel):
    """Where the answer is, unless the task says it: a stream, a file, or what a command prints."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    stream: Literal["stdout", "stderr"] | None = None
    """What the program wrote there; `stdout` by default."""
    file: Text | None = None
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
        given = [place for place in ("stream", "file", "command") if getattr(self, place)]
        if len(given) > 1:
            said = f"the answer is in one place, not in {' and in '.join(given)}"
            raise FieldFault(said, given[1], remedy="write one of stream, file and command")
        return self


class CommandParams(BaseModel):
    """`harness: {id: command, …}`.

    In words and variables stand, if wanted: {prompt} {prompt_file} {system} {system_file} {files}
    {model} {url} {token} {workdir} {home}; {{prompt}} is a literal {prompt}.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    run: Words | None = None
    """The program and its arguments; no shell."""
    script: Text | None = None
    """Text for a shell instead; nothing is replaced in it, `$STEELYARD_PROMPT_FILE` is set."""
    shell: Text = "sh"
    """What runs `script`."""
    files: Annotated[tuple[Text, ...], WrittenPath()] = ()
    """Files and folders of this machine, brought into the folder {files} of the environment: the
    agent itself, say. What they hold is part of the generation identity."""
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
    cwd: Text | None = None
    """Where it starts, relative to the working folder."""
    timeout_seconds: PositiveFloat | None = None
    """Of the program's own time, waiting for limits and retries of the model left out; what it
    printed is kept. `execution.run_timeout_seconds` counts the agent's whole."""
    max_output_bytes: PositiveInt = 10 * 1024 * 1024
    """Kept of each stream; the rest is read and dropped."""
    answer: AnswerParams = AnswerParams()
    """Where its answer is."""
    log: tuple[Text, ...] = ()
    """Its own logs, with * and ? for names; their last 128 KiB go into the trajectory."""
    allow_exit_codes: Annotated[tuple[int, ...], Field(min_length=1)] = (0,)
    """Any other is ERROR `agent_failed`."""

    _sources: tuple[Path, ...] = PrivateAttr(())

    @field_validator("env")
    @classmethod
    def _variables(cls, env: dict[str, str]) -> dict[str, str]:
        for name in env:
            if not _NAME.fullmatch(name):
                raise FieldFault(
                    f"{name!r} is no name of a variable", name, remedy="a name has no = and no NUL"
                )
        return env

    @field_validator("log", "files", mode="before")
    @classmethod
    def _one_path(cls, paths: Any) -> Any:
        return (paths,) if isinstance(paths, str) else paths

    @field_validator("files")
    @classmethod
    def _are_there(cls, files: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        taken: set[str] = set()
        for number, path in enumerate(_found(files, info)):
            if not path.exists():
                raise FieldFault(
                    f"there is no {files[number]}",
                    number,
                    remedy=f"relative paths start from {_base(info).resolve()}",
                )
            if path.name in taken:
                raise FieldFault(
                    f"two of the files have the same name {path.name}",
                    number,
                    remedy="they lie side by side in the environment: rename one",
                )
            taken.add(path.name)
        return files

    @model_validator(mode="after")
    def _find(self, info: ValidationInfo) -> CommandParams:
        self._sources = _found(self.files, info)
        return self

    @property
    def sources(self) -> tuple[Path, ...]:
        """Where `files` are on this machine."""
        return self._sources

    @field_serializer("files")
    def _names(self, files: tuple[str, ...]) -> list[str]:
        """Give names alone: where the files lie changes nothing that an agent does."""
        return [path.name for path in self._sources]

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorated property
    @property
    def files_sha256(self) -> str | None:
        """What the files hold; None without any."""
        return _digest(self._sources) if self._sources else None

    @model_validator(mode="after")
    def _fits(self) -> CommandParams:
        choice = "write run (a list of words) or script (text for a shell)"
        if self.run is not None and self.script is not None:
            raise FieldFault("run and script are both given", "script", remedy=choice)
        if self.run is None and self.script is None:
            raise FieldFault("it is not said what to run", remedy=choice)
        if self.run is None:
            return self
        if not self.run[0]:
            raise FieldFault("run names no program", "run", 0, remedy="its first word is one")
        words = (*self.run, *self.env.values())
        for way, field in (("argument", "{prompt}"), ("file", "{prompt_file}")):
            if self.prompt == way and not any(field in word for word in words):
                raise FieldFault(
                    f"the prompt is handed over as {way}, and no word of run holds {field}",
                    "prompt",
                    remedy=f"write {field} among the words of run",
                )
        return self


def _base(info: ValidationInfo) -> Path:
    return Path((info.context or {}).get("base_dir", "."))


def _found(files: tuple[str, ...], info: ValidationInfo) -> tuple[Path, ...]:
    return tuple((_base(info) / name).resolve() for name in files)


def _digest(sources: tuple[Path, ...]) -> str:
    """Hash names, contents and whether they can be run, in an order of their own."""
    digest = hashlib.sha256()
    for source in sorted(sources, key=lambda path: path.name):
        for path in (source, *_below(source)):
            place = path.relative_to(source.parent)
            is_run = bool(path.lstat().st_mode & stat.S_IXUSR)
            digest.update(f"{place.as_posix()}\0{is_run}\0".encode("utf-8", "surrogateescape"))
            if path.is_symlink():
                digest.update(f"-> {path.readlink()}\0".encode("utf-8", "surrogateescape"))
            elif path.is_file():
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _below(folder: Path) -> Iterator[Path]:
    """Iterate over what a folder holds, compiled files of Python left out."""
    if folder.is_dir():
        for path in sorted(folder.rglob("*")):
            if "__pycache__" not in path.parts:
                yield path
