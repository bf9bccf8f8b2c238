"""Test one module of the working folder; exit with 1 and say what failed where one does."""

import importlib.util
import sys
from pathlib import Path


def load(name):
    """Import a module of the working folder by its file: the folder is not on the path."""
    spec = importlib.util.spec_from_file_location(name, Path.cwd() / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expect(found, wanted):
    """Leave with 1 where the two differ."""
    if found != wanted:
        sys.exit(f"expected {wanted!r}, found {found!r}")


def moving_average():
    """Every window counts, the last one too."""
    tested = load("averages").moving_average
    expect(tested([1, 2, 3, 4], 2), [1.5, 2.5, 3.5])
    expect(tested([5], 1), [5])
    expect(tested([1, 2], 3), [])
    expect(tested([], 1), [])


def slugs():
    """Accents go, runs collapse, no dash at either end."""
    tested = load("slugs").slug
    expect(tested("Crème  brûlée!"), "creme-brulee")
    expect(tested("Hello, World 2"), "hello-world-2")
    expect(tested("--- "), "")


def intervals():
    """An interval inside another one changes nothing."""
    tested = load("intervals").merged
    expect(tested([(1, 5), (2, 3), (4, 8)]), [(1, 8)])
    expect(tested([(3, 4), (1, 2)]), [(1, 2), (3, 4)])
    expect(tested([(1, 2), (2, 3)]), [(1, 3)])
    expect(tested([]), [])


TESTS = {"moving-average": moving_average, "slugs": slugs, "intervals": intervals}
TESTS[sys.argv[1]]()
