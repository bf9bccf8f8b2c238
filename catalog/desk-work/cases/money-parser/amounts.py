"""Amounts of money as people type them."""


def to_cents(text):
    """Give an amount in cents."""
    text = text.strip().replace(",", "")
    euros, _, cents = text.partition(".")
    return abs(int(float(euros + "." + (cents or "0")) * 100))
