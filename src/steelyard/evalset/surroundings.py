"""Where the settings of a set come from beside its manifest: `resume` needs none of them again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from steelyard.config.layers import Override


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Configuration files, the command line's shared controls, and the folder they start from."""

    config_files: tuple[Path, ...] = ()
    overrides: tuple[Override, ...] = ()
    """The command line's; none of them holds a secret or a document of its own."""
    cwd: Path | None = None
    """Where the project is looked for; the working folder by default."""
    environ: Mapping[str, str] | None = None
    """The variables that references name; this process's own by default. Never written."""

    def as_json(self) -> dict[str, Any]:
        """Give the form of `evalset.json`."""
        return {
            "cwd": str((self.cwd or Path.cwd()).absolute()),
            "config_files": [str(file) for file in self.config_files],
            "overrides": [
                {
                    "path": list(one.path),
                    "value": one.value,
                    "option": one.option,
                    "is_text": one.is_text,
                }
                for one in self.overrides
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Surroundings:
        """Read what `as_json` gave.

        Raises:
            KeyError, TypeError: it is not that.
        """
        return cls(
            tuple(Path(file) for file in data["config_files"]),
            tuple(
                Override(tuple(one["path"]), one["value"], one["option"], one["is_text"])
                for one in data["overrides"]
            ),
            Path(data["cwd"]),
        )

    def with_more(self, given: Surroundings) -> Surroundings:
        """Lay what is given now over what was given before; a folder that is gone is not kept."""
        was = self.cwd
        return Surroundings(
            (*self.config_files, *given.config_files),
            (*self.overrides, *given.overrides),
            given.cwd or (was if was is not None and was.is_dir() else None),
            given.environ,
        )


NOTHING_AROUND: Final = Surroundings()
