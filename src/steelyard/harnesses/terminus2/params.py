"""What people may ask of `terminus2`, in the words of Harbor's own options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
)

from steelyard.components.path_params import WrittenPath
from steelyard.config.validation import FieldFault

VERSION: Final = "0.26.0"
"""Of the package `harbor`. We put ourselves into its inner parts, so it is exact."""
_EXACT: Final = re.compile(r"[0-9]+(\.[0-9]+)+([-.+]?[0-9A-Za-z]+)*")


def _exact(version: str) -> str:
    if not _EXACT.fullmatch(version):
        raise FieldFault(
            f"{version!r} is no exact version",
            remedy="write one as 0.26.0: a range or `latest` would be another agent tomorrow",
        )
    return version


class ModelInfo(BaseModel):
    """`model_info`: what the package is to know of a model that its own table lacks."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    max_input_tokens: PositiveInt | None = None
    """The model's context; by it summaries are made in time."""
    max_output_tokens: PositiveInt | None = None


class Terminus2Params(BaseModel):
    """`harness: {id: terminus2, …}`."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())
    version: Annotated[str, AfterValidator(_exact)] = VERSION
    """Of the package `harbor`, exact; part of the generation identity. Others than the default may
    not fit."""
    parser_name: Literal["json", "xml"] = "json"
    """In which form the model answers."""
    max_turns: PositiveInt | None = None
    """Answers of the model that are acted upon, ERROR `turn_limit` beyond; a task's own limit,
    where lower, holds. None: no limit but time and budget."""
    enable_summarize: bool = True
    """Where the conversation grows too long, the model sums it up and goes on from there."""
    proactive_summarization_threshold: int = Field(default=8000, ge=0)
    """It does so once fewer tokens of the model's context are free; 0: only where the endpoint
    says that it is too long."""
    model_info: ModelInfo = ModelInfo()
    """The model's limits; where left out, the package's own table, else a context of 1,000,000."""
    tmux_pane_width: PositiveInt = 160
    """Of the terminal, in columns."""
    tmux_pane_height: PositiveInt = 40
    """Of the terminal, in rows."""
    install_tmux: bool = True
    """Where the environment has no tmux, install it by its package manager, as Harbor does; that
    needs a network there, and changes what is measured."""
    python: Annotated[Path | None, WrittenPath()] = None
    """An interpreter that has the package. None: ours, else the one that
    `steelyard agent install terminus2` made."""
    install_timeout_seconds: PositiveFloat = 1800
    """Of making such an interpreter."""

    @field_validator("python")
    @classmethod
    def _from_base(cls, python: Path | None, info: ValidationInfo) -> Path | None:
        """Take it from the file's folder; a link is kept, for by it a virtual environment is."""
        if python is None:
            return None
        base = (info.context or {}).get("base_dir")
        return (Path(base or Path.cwd()) / python.expanduser()).absolute()
