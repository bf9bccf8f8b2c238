"""Moving averages of a series."""


def moving_average(values, width):
    """Give the mean of every `width` values in a row, in order; [] where there are fewer."""
    if width < 1:
        raise ValueError("width must be at least 1")
    return [sum(values[i : i + width]) / width for i in range(len(values) - width)]
