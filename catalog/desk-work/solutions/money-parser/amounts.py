"""Amounts of money as people type them."""

import re

_AMOUNT = re.compile(
    r"""(?P<sign>[+-]?)
    (?P<whole>[0-9]+|[0-9]{1,3}(?:(?P<group>[.,])[0-9]{3})(?:(?P=group)[0-9]{3})*)
    (?:(?P<point>[.,])(?P<cents>[0-9]{1,2}))?""",
    re.VERBOSE,
)


def to_cents(text):
    """Give an amount in cents, exactly.

    Raises:
        ValueError: it is no amount.
    """
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or (found["group"] and found["group"] == found["point"]):
        raise ValueError(f"{text!r} is no amount")
    whole = int(re.sub("[.,]", "", found["whole"]))
    cents = int((found["cents"] or "").ljust(2, "0"))
    return (whole * 100 + cents) * (-1 if found["sign"] == "-" else 1)
