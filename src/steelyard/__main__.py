"""The `steelyard` command. `--version` is answered before anything else is imported."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from steelyard._version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if list(arguments) in (["--version"], ["-V"]):
        sys.stdout.write(f"steelyard {__version__}\n")
        return 0
    # Start-up makes many objects that live on and hardly a cycle: looking for cycles after every
    # 700 of them is 8% of a dry run's CPU.
    gc.set_threshold(20_000, 20, 20)
    from steelyard.cli.errors import run_guarded
    from steelyard.cli.streams import settle

    status = run_guarded(arguments)
    settle()
    return status


if __name__ == "__main__":
    sys.exit(main())
