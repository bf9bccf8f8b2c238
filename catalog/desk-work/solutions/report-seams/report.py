"""Sales by region."""

import sys


def read_sales(lines):
    """Yield (region, cents) of each line behind the header; raise ValueError for a bad amount."""
    for number, line in enumerate(lines, 1):
        if number == 1 or not line.strip():
            continue
        region, amount = line.rstrip("\n").split(";")
        whole, _, part = amount.partition(".")
        if not whole.isdigit() or not (part.isdigit() and len(part) == 2):
            raise ValueError(f"line {number}: bad amount")
        yield region, int(whole) * 100 + int(part)


def totals(pairs):
    """Add up by region, in the order of first appearance."""
    found = {}
    for region, cents in pairs:
        found[region] = found.get(region, 0) + cents
    return found


def render(found):
    """Give the table, with a line for all regions."""
    rows = [*found.items(), ("all", sum(found.values()))]
    return "".join(f"{name:<12}{cents // 100:>12}.{cents % 100:02}\n" for name, cents in rows)


def main():
    """Print the table of the file that the first argument names."""
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            text = render(totals(read_sales(file)))
    except ValueError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    print(text, end="")


if __name__ == "__main__":
    main()
