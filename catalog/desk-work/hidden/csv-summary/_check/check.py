"""Inputs that the agent has not seen."""

import json
import subprocess
import sys


def ran(text):
    """The object it prints, or None, and its exit status and errors."""
    done = subprocess.run(
        [sys.executable, "-I", "-B", "summarise.py"],
        input=text.encode(), capture_output=True, timeout=20,
    )  # fmt: skip
    shown = json.loads(done.stdout) if done.returncode == 0 else None
    return shown, done.returncode, done.stderr.decode()


found, status, _ = ran('a,b,c\n1,"x, y",\n-2,"two\nlines",\n10,"x, y"\n')
assert status == 0
assert list(found) == ["a", "b", "c"]
assert found == {
    "a": {"filled": 3, "distinct": 3, "min": -2, "max": 10},
    "b": {"filled": 3, "distinct": 2},
    "c": {"filled": 0, "distinct": 0},
}, found
assert type(found["a"]["max"]) is int
found, _, _ = ran("n,m\r\n 1.50 ,1e3\r\n+2,4\r\n1.5,nan\r\n")
assert found["n"] == {"filled": 3, "distinct": 3, "min": 1.5, "max": 2}, found
assert type(found["n"]["max"]) is int, "a whole number is written without a point"
assert found["m"] == {"filled": 3, "distinct": 3}, "1e3 and nan are not numbers here"
assert ran("only,header\n")[0] == {
    "only": {"filled": 0, "distinct": 0}, "header": {"filled": 0, "distinct": 0}
}  # fmt: skip
assert ran("")[:2] == ({}, 0)
assert ran("x\n9007199254740993\n")[0]["x"]["max"] == 9007199254740993
_, status, said = ran("a,b\n1,2\n1,2,3\n")
assert status == 1
assert "2" in said
assert ran('n\n"\u0661"\n')[0]["n"] == {"filled": 1, "distinct": 1}, "only 0 to 9 are digits"
print("passed", sys.argv[1])
