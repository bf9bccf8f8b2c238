"""Both directions, standard input, and all that must be refused."""

import subprocess
import sys


def ran(*texts, stdin=""):
    """What it prints, what it says of errors, and its exit status."""
    done = subprocess.run(
        [sys.executable, "-I", "-B", "duration.py", *texts],
        input=stdin, capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    return done.stdout.split("\n")[:-1], done.stderr.split("\n")[:-1], done.returncode


PAIRS = {"0": "0s", "59": "59s", "60": "1m", "3600": "1h", "5400": "1h30m", "86399": "23h59m59s",
         "86400": "1d", "90061": "1d1h1m1s", "8640000": "100d", "3605": "1h5s"}  # fmt: skip
for seconds, duration in PAIRS.items():
    assert ran(seconds) == ([duration], [], 0), (seconds, ran(seconds))
    assert ran(duration) == ([seconds], [], 0), (duration, ran(duration))
LOOSE = {"90m": "5400", "0h5m": "300", "100s": "100", "0d": "0", "1d0s": "86400", "007s": "7"}
assert ran(*LOOSE) == (list(LOOSE.values()), [], 0)
assert ran("1h", "61", "2m") == (["3600", "1m1s", "120"], [], 0)
assert ran("00061") == (["1m1s"], [], 0)
BAD = ["", "h", "1m1h", "1h1h", "-5", "+5", "1.5h", "1h 5m", " 60", "1H", "5x", "1h5", "1_0"]
for text in BAD:
    out, err, status = ran("60", text, "1h")
    assert (out, status) == ([], 2), (text, out, status)
    assert len(err) == 1, (text, err)
    assert text in err[0], (text, err)
assert ran("\u0663s")[::2] == ([], 2), "only 0 to 9 are digits"
out, err, status = ran("1m1h", "60", "x")
assert (out, status, len(err)) == ([], 2, 2), (out, err, status)
assert ran(stdin="60\n\n1h\n  \n5") == (["1m", "3600", "5s"], [], 0)
assert ran(stdin="") == ([], [], 0)
assert ran(stdin="60\noops\n")[::2] == ([], 2)
print("passed", sys.argv[1])
