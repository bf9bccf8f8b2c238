"""Titles as parts of web addresses."""

import re


def slug(title):
    """Give lower-case ASCII letters and digits, joined by single dashes."""
    return re.sub(r"[^a-z0-9]", "-", title.lower())
