"""Which files are tests, scorers, rewards or answers, as far as names tell."""

from __future__ import annotations

import re
from typing import Final

from steelyard.scanners.acts import words
from steelyard.scanners.shell.paths import name_of, parts_of

_TEST_FOLDERS: Final = frozenset({"tests", "test", "__tests__", "spec", "specs", "testing"})
_NOT_TESTS: Final = frozenset(
    {"__pycache__", ".pytest_cache", "fixtures", "data", "snapshots", "__snapshots__", "testdata",
     "output", "outputs", "tmp", "temp", ".tox", "node_modules", "golden", "resources"}
)  # fmt: skip
_CODE: Final = re.compile(
    r"\.(?:py|js|jsx|ts|tsx|mjs|cjs|go|rs|rb|java|kt|c|cc|cpp|h|cs|php|swift|sh|bats|exs|scala)$"
)
_TEST_NAME: Final = re.compile(
    r"^(?:test_.*|tests?)\.(?:py|sh|js|ts|rb|c|cpp)$|_test\.(?:py|go|rb|cc|cpp|exs|sh)$|"
    r"\.(?:test|spec)\.[jt]sx?$|_spec\.rb$|(?:Test|Tests|Spec)\.(?:java|kt|cs|scala)$"
)
_SCORER_NAME: Final = re.compile(
    r"^(?:score|scorer|scoring|grade|grader|grading|evaluate|evaluation|evaluator|verifier|verify|"
    r"run_tests|judge)(?:_\w+)?\.(?:py|sh|js)$"
)
_SCORER_PLACE: Final = re.compile(
    r"^/(?:tests|verifier|grader|scorer|evaluation)(?:/|$)|/verifier/(?!logs)"
)
_REWARD: Final = re.compile(r"(?:^|/)reward\.(?:txt|json)$|(?:^|/)logs/verifier/[\w.-]+$")
_ANSWER_PLACE: Final = re.compile(
    r"^/(?:solutions?|tests|private|hidden|oracle|answers?|grader|verifier|scorer)(?:/|$)|"
    r"/(?:\.solutions?|\.answers?|hidden(?:_tests?|-tests?|_answers)?|ground_?truth|oracle|grader|verifier)(?:/|$)"
)
_ANSWER_NAME: Final = re.compile(
    r"^(?:\.?answers?(?:[_-]?keys?)?\.(?:json|jsonl|csv|tsv|txt|ya?ml|md|pkl|npy)|answer_?key\w*(?:\.\w+)?|ground[_-]?truth\w*\.\w+|"
    r"gold(?:en)?(?:_\w+)?\.(?:patch|diff)|hidden_\w+\.\w+|expected_(?:output|answer)s?\S*|"
    r"reference_(?:solution|answer)s?\.\w+|solution\.(?:patch|diff)|"
    r"\*\w*(?:solution|ground_truth|answer)\w*\*?)$",
    re.IGNORECASE,
)
_EXPECTED: Final = re.compile(
    r"(?:^|/)(?:expected|golden|gold|reference)[^/]*(?:/[^/]*)?$|\.(?:expected|golden)$"
)
RUNNERS: Final = words(
    "pytest py.test npm npx jest vitest mocha yarn pnpm make tox nox cargo go mvn gradle "
    "rspec phpunit ctest unittest coverage bats"
)
_BIN: Final = re.compile(r"(?:^|/)s?bin/[^/]+$")


def is_test(path: str) -> bool:
    """True for a file that holds tests."""
    parts = parts_of(path)
    if not parts or not _NOT_TESTS.isdisjoint(parts):
        return False
    name = parts[-1]
    if _TEST_NAME.search(name):
        return True
    return (
        bool(_CODE.search(name))
        and not _TEST_FOLDERS.isdisjoint(parts[:-1])
        and (name not in ("__init__.py", "conftest.py"))
    )


def holds_tests(path: str) -> bool:
    """True for a file of tests, a folder of them, or a pattern that matches such files."""
    if is_test(path):
        return True
    parts = parts_of(path.rstrip("*").rstrip("/"))
    if not parts or not _NOT_TESTS.isdisjoint(parts):
        return False
    name = name_of(path)
    if "*" in name:
        return is_test(path.replace("*", "x"))
    return parts[-1] in _TEST_FOLDERS or (
        "." not in name and not _TEST_FOLDERS.isdisjoint(parts[:-1]) and not path.endswith("/log")
    )


def is_scorer(path: str) -> bool:
    """True for what a task's own verifier is made of, by its place."""
    return _SCORER_PLACE.search(path) is not None and not is_reward(path)


def is_scorer_name(path: str) -> bool:
    """True for a file that is named as scorers are."""
    return _SCORER_NAME.match(name_of(path)) is not None


def is_reward(path: str) -> bool:
    """True for the file in which a verifier leaves its reward."""
    return _REWARD.search(path) is not None


def is_answer(path: str) -> bool:
    """True for what a task hides: solutions, answers, the verifier's tests."""
    return bool(_ANSWER_PLACE.search(path) or _ANSWER_NAME.match(name_of(path)))


def is_expected(path: str) -> bool:
    """True for a file of expected output among the tests."""
    parts = parts_of(path)
    in_tests = not _TEST_FOLDERS.isdisjoint(parts[:-1])
    return in_tests and bool(_EXPECTED.search(path) or re.search(r"\.(?:out|ans)$", path))


def is_runner(path: str) -> bool:
    """True for a program that runs tests, where programs stand or by its bare name."""
    return name_of(path) in RUNNERS and (bool(_BIN.search(path)) or "/" not in path)


def is_hook(path: str) -> bool:
    """True for files that Python or pytest load by themselves."""
    return name_of(path) in ("conftest.py", "sitecustomize.py", "usercustomize.py")


def is_settings(path: str) -> bool:
    """True for files that say which tests are run, and how."""
    return name_of(path) in (
        "pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", ".pytest.ini", "package.json",
        "Makefile", "makefile", "GNUmakefile", "jest.config.js", "vitest.config.ts", "noxfile.py",
    )  # fmt: skip
