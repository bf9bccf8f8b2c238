"""The process that searches one text for one pattern; run as a file, never imported.

Standard input is `{pattern, text}` as JSON; standard output says `found` or nothing. The limits on
time and memory are its own, so that they hold should its parent die first.
"""

import json
import os
import re
import resource
import sys

MEMORY_BYTES = 512 * 1024**2


def main() -> None:
    """Search, answer, end."""
    cpu_s = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    job = json.load(sys.stdin.buffer)
    if re.search(job["pattern"], job["text"]):
        sys.stdout.write("found")
        sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
