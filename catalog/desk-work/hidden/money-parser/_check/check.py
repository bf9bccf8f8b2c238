"""Right for every form, ValueError for the rest."""

import importlib.util
import sys

spec = importlib.util.spec_from_file_location("amounts", "amounts.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

RIGHT = {
    "19.99": 1999, "-0.50": -50, "1.234,50": 123450, "1,234.50": 123450, "1,234": 123400,
    "1.234": 123400, "12,5": 1250, "12.5": 1250, "+7": 700, " 3,20 ": 320, "0": 0, "-0": 0,
    "1.234.567": 123456700, "1,234,567.8": 123456780, "1 234,50": None, "1'234.50": None,
    "4.35": 435, "1.15": 115, "90071992547409.93": 9007199254740993,
    "1234567,89": 123456789, "-12.345,6": -1234560,
}  # fmt: skip
WRONG = (
    "", " ", "abc", "1.2.3", "1,23,456", "12,34.50", "1.234.50", "1,234,50", "--5", "5-", "1.",
    ".5", "1e3", "1_000", "12.3456", "1234.567", "1.234,567.00", "nan", "0x10", "1,2345", "€5",
)  # fmt: skip
for text, cents in RIGHT.items():
    if cents is None:  # a space or an apostrophe is no separator here
        WRONG += (text,)
        continue
    found = module.to_cents(text)
    assert type(found) is int, (text, found)
    assert found == cents, (text, found, cents)
for text in WRONG:
    try:
        found = module.to_cents(text)
    except ValueError:
        continue
    raise AssertionError((text, found, "should be refused"))
print("passed", sys.argv[1])
