"""The process that does bounded work; run as a file by `timebox.py`, never imported.

Standard input is one job as JSON, standard output one reply. The limits on time and memory are
its own, so that they hold should its parent die first.
"""

import gc
import importlib
import json
import os
import resource
import sys
import threading
import types
from pathlib import Path
from typing import Any

STACK_BYTES = 256 * 1024 * 1024
RECURSION_LIMIT = 20_000


def _stand_in_for(package: str, folder: Path) -> None:
    """Make packages importable without running their own code, which would load everything."""
    while package:
        module = types.ModuleType(package)
        module.__path__ = [str(folder)]
        sys.modules[package] = module
        package, _, _ = package.rpartition(".")
        folder = folder.parent


def _reply(job: dict[str, Any]) -> dict[str, Any]:
    function = getattr(importlib.import_module(job["module"]), job["function"])
    faults = importlib.import_module(job["package"] + ".faults")
    try:
        return {"result": function(**job["arguments"])}
    except faults.PackFault as error:
        return {"fault": str(error)}
    except MemoryError:
        return {"memory": True}
    except RecursionError:
        return {"recursion": True}


def _main() -> None:
    cpu_s, memory_bytes = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    job = json.load(sys.stdin.buffer)
    sys.path[:] = job["paths"]
    _stand_in_for(job["package"], Path(__file__).parent)
    sys.stdout.write(json.dumps(_reply(job)))
    sys.stdout.flush()
    os._exit(0)  # taking a large value apart costs as much as making it


if __name__ == "__main__":
    gc.disable()  # a job makes values and ends
    sys.setrecursionlimit(RECURSION_LIMIT)
    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=_main)
    thread.start()
    thread.join()
