"""Closed intervals of whole numbers."""


def merged(intervals):
    """Give the union of the intervals as few, sorted ones; those that touch become one."""
    result = []
    for start, end in sorted(intervals):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], end)
        else:
            result.append((start, end))
    return result
