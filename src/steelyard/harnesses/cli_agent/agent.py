"""What Steelyard knows of an agent program, as a value: one of these is one more agent.

`table.py` holds the built-in ones; a plug-in writes its own beside a subclass of `CliAgent`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from steelyard.harnesses.cli_agent.log import AgentLog
from steelyard.harnesses.cli_agent.sources import Files, Npm, PyPI

FIELDS: Final = (
    "agent", "home", "workdir", "prompt", "prompt_file", "model", "url", "token", "turns",
)  # fmt: skip
"""What may stand in braces in an agent's words and variables."""

_FIELD: Final = re.compile(rf"\{{({'|'.join(FIELDS)})\}}")


@dataclass(frozen=True, slots=True)
class Place:
    """One attempt of an agent: where everything is, as its program sees it."""

    agent: str
    """The folder that its program is mounted at; empty where the environment brings it."""
    home: str
    """Its home, private to the session and no part of what is measured."""
    workdir: str
    prompt: str
    model: str
    url: str
    """The gateway's, without a path."""
    token: str = field(repr=False)
    """Stands for a key; of this attempt alone."""
    turns: int | None = None
    """How many turns it may take; None for no bound."""
    web_tools: bool = False
    """True where tools that its provider runs (web search) stay on."""

    def filled(self, word: str) -> str:
        """Replace the fields of a word, in one pass: what stands in a value is never replaced."""
        values = {
            "agent": self.agent,
            "home": self.home,
            "workdir": self.workdir,
            "prompt": self.prompt,
            "prompt_file": f"{self.home}/prompt.txt",
            "model": self.model,
            "url": self.url,
            "token": self.token,
            "turns": "" if self.turns is None else str(self.turns),
        }
        return _FIELD.sub(lambda found: values[found[1]], word)


LogReader = Callable[[bytes, bytes], AgentLog]
"""From what lies in the log's file (empty where there is none) and what the program printed to
steps. Pure; raises nothing, whatever stands in either: both were written by hostile code."""


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent program: how it is installed, started, pointed at the gateway and understood."""

    id: str
    title: str
    """For people, with the protocols that it speaks."""
    version: str
    """Of the program, where no other is asked for; part of the generation identity."""
    source: Npm | PyPI | Files
    """How it is installed into the cache, once a machine."""
    program: tuple[str, ...]
    """The words that start it there; `{agent}` is the folder it was installed into, and the first
    word may have `*` where exactly one name fits."""
    own_program: tuple[str, ...]
    """The words that start the one an environment brings: `install: environment`."""
    version_words: tuple[str, ...]
    """After the program: it prints its version."""
    arguments: tuple[str, ...]
    """After the program, with fields: the agent works on the task and ends."""
    read_log: LogReader
    log: str
    """The log's file, with fields, `*` and `?`; of several the newest is read."""
    turn_arguments: tuple[str, ...] = ()
    """After `arguments` where turns are bounded; empty where the program has no such bound."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of its environment, over those that name endpoint and token; with fields."""
    files: Callable[[Place], Mapping[str, str]] | None = None
    """Files of its home, by path relative to it: settings, where variables do not do."""
    prompt_on_stdin: bool = True
    """False where `{prompt}` stands in `arguments`."""
    protocols: tuple[str, ...] = ()
    """What it speaks; the gateway passes on, it does not translate."""
