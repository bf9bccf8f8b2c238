"""The `steelyard` command. `--version` is answered before anything else is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from steelyard._version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if list(arguments) in (["--version"], ["-V"]):
        sys.stdout.write(f"steelyard {__version__}\n")
        return 0
    from steelyard.cli.errors import run_guarded

    return run_guarded(arguments)


if __name__ == "__main__":
    sys.exit(main())
