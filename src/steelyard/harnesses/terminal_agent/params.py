"""What people may ask of `terminal_agent`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt


class TerminalAgentParams(BaseModel):
    """`harness: {id: terminal_agent, …}`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    style: Literal["tools", "fenced"] = "tools"
    """How the model asks for a command: by a tool call, or in a fenced block of its text. `fenced`
    is for models and endpoints without tools."""
    max_turns: PositiveInt = 100
    """Model calls, those of a compaction aside; a task's own limit, where lower, holds."""
    max_output_tokens: PositiveInt | None = None
    """Output tokens of all calls together; a task's own limit, where lower, holds."""
    command_timeout_seconds: PositiveFloat = 180.0
    """A command that takes longer is ended, and the model is told."""
    shown_chars: int = Field(default=10_000, ge=200)
    """Of a command's output the model sees as much, its beginning and its end."""
    context_tokens: PositiveInt | None = None
    """Above so many input tokens of a call the conversation is made shorter: the model sums up,
    the latest turns stay. None: only where the endpoint says that it is too long."""
    kept_turns: NonNegativeInt = 4
    """Turns that a compaction leaves as they are."""
    shell: Literal["auto", "bash", "sh"] = "auto"
    """`auto`: bash where the environment has it."""
    system: str | None = None
    """Said to the model in place of our own words; the task's own system message comes after it."""
