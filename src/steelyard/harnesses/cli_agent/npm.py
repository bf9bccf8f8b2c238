"""Install an agent's packages from npm: exact versions, no scripts, sums compared."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from steelyard.harnesses.cli_agent.installer import NotInstalled, run_installer
from steelyard.harnesses.cli_agent.sources import Npm

_LOCK: Final = Path("node_modules", ".package-lock.json")


def install_npm(folder: Path, source: Npm, version: str, *, timeout_s: float) -> Mapping[str, str]:
    """Install the packages below `folder/node_modules`. Blocking.

    npm checks what it downloads against the registry's sums; those of the default version must
    be the ones we know as well.

    Returns:
        Package with version → its sum.

    Raises:
        NotInstalled: npm is missing or failed, or a sum is another.
    """
    asked = source.asked(version)
    what = " and ".join(asked)
    (folder / "package.json").write_text('{"private": true}\n')
    options = (
        "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--no-save",
        "--omit=dev", "--omit=optional", "--omit=peer", "--install-links=false",
        # The packages are those of the system that sessions run on, which npm's need not be.
        *([] if sys.platform == "linux" else ["--force"]),
    )  # fmt: skip
    run_installer(
        ["npm", "install", *options, "--", *asked], folder, what=what, timeout_s=timeout_s
    )
    found = _found(folder, what)
    for package, pin in source.integrity.items():
        if package in asked and pin not in found.values():
            raise NotInstalled(
                f"{package} is not the package that this version of Steelyard knows: its sum "
                f"is not {pin}",
                remedy="look at where npm takes packages from; do not use what it gave",
            )
    return found


def _found(folder: Path, what: str) -> dict[str, str]:
    try:
        packages: Any = json.loads((folder / _LOCK).read_bytes())["packages"]
        return {
            f"{name.rpartition('node_modules/')[2]}@{one['version']}": str(one.get("integrity", ""))
            for name, one in packages.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotInstalled(
            f"npm does not say what it installed for {what}: {error!r}",
            remedy="use npm 8 or newer",
        ) from error
