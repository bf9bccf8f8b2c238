import sys

sums = {}
number = 0
for line in open(sys.argv[1], encoding="utf-8"):
    number += 1
    if number == 1 or not line.strip():
        continue
    region, amount = line.rstrip("\n").split(";")
    whole, _, part = amount.partition(".")
    if not whole.isdigit() or not (part.isdigit() and len(part) == 2):
        print("line %d: bad amount" % number, file=sys.stderr)
        sys.exit(1)
    sums[region] = sums.get(region, 0) + int(whole) * 100 + int(part)
for region in sums:
    print("%-12s%12d.%02d" % (region, sums[region] // 100, sums[region] % 100))
print("%-12s%12d.%02d" % ("all", sum(sums.values()) // 100, sum(sums.values()) % 100))
