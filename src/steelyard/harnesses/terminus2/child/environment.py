"""Harbor's environment over a session that the driver holds: programs and files go through it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths

from .link import Link


class SessionEnvironment(BaseEnvironment):
    """The attempt's session; the driver opened it, and closes it."""

    def __init__(self, link: Link, folder: Path) -> None:
        self._link = link
        super().__init__(
            environment_dir=folder,
            environment_name="steelyard",
            session_id="steelyard",
            trial_paths=TrialPaths(folder),
            task_env_config=EnvironmentConfig(),
            logger=logging.getLogger("steelyard"),
        )

    @staticmethod
    def type() -> str:
        """Name the kind of environment."""
        return "steelyard"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """Nothing beyond programs and files."""
        return EnvironmentCapabilities()

    def _validate_definition(self) -> None:
        """Nothing is defined here."""

    async def start(self, force_build: bool) -> None:
        """It runs already."""

    async def stop(self, delete: bool) -> None:
        """The driver ends it."""

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command by bash, as the session's own user."""
        return _result(
            self._link.ask("exec", command=command, cwd=cwd, env=env or {}, timeout_s=timeout_sec)
        )

    async def serve(self, command: str) -> ExecResult:
        """Run a command whose programs in the background are to stay until the attempt's end."""
        return _result(self._link.ask("serve", command=command))

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file in."""
        self._copy("upload", str(source_path), target_path)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy a folder in."""
        self._copy("upload", str(source_dir), target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a file out."""
        self._copy("download", source_path, str(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy a folder out."""
        self._copy("download", source_dir, str(target_dir))

    def _copy(self, kind: str, source: str, target: str) -> None:
        answer = self._link.ask(kind, source=source, target=target)
        if why := answer.get("error"):
            raise OSError(why)


def _result(answer: dict[str, Any]) -> ExecResult:
    return ExecResult(
        stdout=answer["stdout"], stderr=answer["stderr"], return_code=answer["exit_code"]
    )
