"""Start one command, wait for it, say what the kernel accounts to it: `meter.py FD COMMAND...`.

A process begins with the peak memory of the one that started it: at `exec` the kernel keeps the
peak of the memory that is left behind. A measuring process that has held much would be found
again in every figure. This one is as small as Python can be, and is started anew for each.
"""

import os
import sys
import time


def main() -> None:
    """Run the command with this process's streams; write the figures to the descriptor."""
    fd, command = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(fd, False)
    started_at, started = time.time(), time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - started
    figures = (
        os.waitstatus_to_exitcode(status),
        usage.ru_utime + usage.ru_stime,
        wall_s,
        usage.ru_maxrss / 1024,
        started_at,
    )
    os.write(fd, " ".join(map(repr, figures)).encode())


main()
