"""The functions as described; the program as before."""

import importlib.util
import io
import subprocess
import sys
from contextlib import redirect_stdout

sys.argv[1:], case_id = [], sys.argv[1]
spec = importlib.util.spec_from_file_location("report", "report.py")
module = importlib.util.module_from_spec(spec)
said = io.StringIO()
with redirect_stdout(said):
    spec.loader.exec_module(module)
assert said.getvalue() == "", "importing prints"

pairs = module.read_sales(iter(["region;amount\n", "b;1.00\n", "\n", "a;2.50\n", "b;0.05"]))
assert not isinstance(pairs, list | tuple), "read_sales yields"
assert list(pairs) == [("b", 100), ("a", 250), ("b", 5)]
try:
    list(module.read_sales(["region;amount", "", "a;1.00", "b;1.5"]))
except ValueError as error:
    said_of_fault = str(error)
else:
    said_of_fault = "nothing"
assert "4" in said_of_fault, said_of_fault
taken = module.read_sales(["region;amount", "a;1.00", "b;oops"])
assert next(taken) == ("a", 100), "pairs come as they are read"

found = module.totals(iter([("z", 1), ("a", 2), ("z", 3)]))
assert list(found.items()) == [("z", 4), ("a", 2)], found
expected = "z                      0.04\na                      0.02\nall                    0.06\n"
assert module.render(found) == expected, module.render(found)
assert module.render({}) == "all                    0.00\n"


def program(text):
    """What the program prints for a file, and its exit status."""
    with open("_check/given.csv", "w", encoding="utf-8") as file:
        file.write(text)
    ran = subprocess.run(
        [sys.executable, "-B", "report.py", "_check/given.csv"],
        capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    return ran.stdout, ran.stderr, ran.returncode


out, err, status = program("region;amount\nnorth;120.50\n\nsouth;99.99\nnorth;0.01\n")
lines = [("north", 120, 51), ("south", 99, 99), ("all", 220, 50)]
assert out == "".join(f"{name:<12}{whole:>12}.{part:02}\n" for name, whole, part in lines), out
assert (err, status) == ("", 0)
assert program("region;amount\nnorth;12.5\n") == ("", "line 2: bad amount\n", 1)
print("passed", case_id)
