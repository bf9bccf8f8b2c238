"""The file parses and holds exactly the data."""

import json
import sys

with open("inventory.json", encoding="utf-8") as file:
    found = json.load(file)
assert found == {
    "warehouse": "north",
    "items": [
        {"sku": "A-100", "name": "Hinge, 35 mm", "count": 1250, "price": 1.10},
        {"sku": "A-101", "name": 'Hinge, 40 mm "soft"', "count": 310, "price": 1.45},
        {"sku": "B-007", "name": "Carpenter's glue", "count": None, "price": 6.00},
        {"sku": "B-008", "name": "Wood filler // oak", "count": 42, "price": 4.25},
        {"sku": "C-020", "name": "Screw 4x40", "count": 12000, "price": 0.03},
    ],
    "checked": True,
}, found
assert found["checked"] is True, "checked is a boolean"
print("passed", sys.argv[1])
