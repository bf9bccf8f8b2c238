"""Write the lock of an agent that comes from PyPI: `agent_lock.py mini_swe_agent [LEFT-OUT ...]`.

Every version and hash for Linux and the Pythons from 3.11 on, no host. Packages named after it are
left out with all that only they need: mini-SWE-agent's `datasets` serves its batch runs alone and
brings 500 MB.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from steelyard.harnesses.cli_agent.sources import PyPI
from steelyard.harnesses.cli_agent.table import AGENTS

_ELSEWHERE = re.compile(r"^[^\s]+ ; [^\n]*sys_platform == '(never|win32|emscripten)'")
_BLOCK = re.compile(r"^(?=[A-Za-z0-9])", re.MULTILINE)


def main() -> None:
    """Resolve and write."""
    agent = AGENTS[sys.argv[1]]
    source = agent.source
    if not isinstance(source, PyPI) or source.lock is None:
        sys.exit(f"{agent.id} has no lock")
    with tempfile.TemporaryDirectory() as folder:
        asked, overrides = Path(folder, "asked.in"), Path(folder, "overrides.txt")
        asked.write_text(f"{source.package}=={agent.version}\n")
        overrides.write_text("".join(f'{name}; sys_platform == "never"\n' for name in sys.argv[2:]))
        settings = {n: v for n, v in os.environ.items() if not n.startswith(("PIP_", "UV_"))}
        done = subprocess.run(
            ["uv", "pip", "compile", "--quiet", "--no-config", "--universal", "--python-version",
             "3.11", "--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate",
             "--override", str(overrides), str(asked)],
            capture_output=True, text=True, check=True, env={**settings, "UV_SYSTEM_CERTS": "true"},
        )  # fmt: skip
    blocks = [block for block in _BLOCK.split(done.stdout) if block.strip()]
    kept = [block for block in blocks if not _ELSEWHERE.match(block)]
    source.lock.write_text("".join(kept))


if __name__ == "__main__":
    main()
