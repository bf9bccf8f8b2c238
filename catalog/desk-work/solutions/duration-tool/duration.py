"""Seconds to durations and back."""

import re
import sys

UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
DURATION = re.compile("".join(f"(?:([0-9]+){unit})?" for unit in UNITS))


def converted(text):
    """Give the other form; raise ValueError for what is neither."""
    if re.fullmatch("[0-9]+", text):
        left, parts = int(text), []
        for unit, size in UNITS.items():
            count, left = divmod(left, size)
            parts += [f"{count}{unit}"] if count else []
        return "".join(parts) or "0s"
    found = DURATION.fullmatch(text)
    if not text or found is None:
        raise ValueError(text)
    numbers = (int(number or 0) for number in found.groups())
    return str(sum(n * size for n, size in zip(numbers, UNITS.values(), strict=True)))


def main():
    """Convert the arguments, or the lines of standard input."""
    texts = sys.argv[1:] or [line.rstrip("\n") for line in sys.stdin if line.strip()]
    results, is_good = [], True
    for text in texts:
        try:
            results.append(converted(text))
        except ValueError:
            print(f"neither seconds nor a duration: {text!r}", file=sys.stderr)
            is_good = False
    if not is_good:
        sys.exit(2)
    for result in results:
        print(result)


main()
