"""What `steelyard` exports changes on purpose, and costs nothing until it is used."""

from __future__ import annotations

import difflib
import subprocess
import sys

import pytest

import steelyard
from tests.sdk.api_text import COMMAND, FILE, api_text


def test_the_public_api_is_what_it_was() -> None:
    old, new = FILE.read_text().splitlines(), api_text().splitlines()
    diff = "\n".join(difflib.unified_diff(old, new, "api.txt", "now", lineterm=""))
    assert not diff, f"\n{diff}\n\nIf this is meant: {COMMAND}, and say so in CHANGELOG.md"


def test_every_public_name_is_there_and_listed() -> None:
    assert dir(steelyard) == sorted(steelyard.__all__)
    assert len(set(steelyard.__all__)) == len(steelyard.__all__)
    for name in steelyard.__all__:
        assert getattr(steelyard, name) is not None, name
    homes = {name for names in steelyard._HOMES.values() for name in names}
    assert homes | {"__version__"} == set(steelyard.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'steelyard' has no attribute 'rum'"):
        steelyard.rum  # noqa: B018


def test_every_public_name_is_documented() -> None:
    silent = [
        name
        for name in steelyard.__all__
        if name not in ("__version__", "Event") and not getattr(steelyard, name).__doc__
    ]
    assert silent == []


LOOK = """
import sys
before = set(sys.modules)
import steelyard
steelyard.__version__
dir(steelyard)
print(*sorted(set(sys.modules) - before))
"""


@pytest.mark.integration
def test_importing_the_package_imports_nothing_else() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LOOK], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.split() == ["steelyard", "steelyard._version"]


TYPED = """
import steelyard as sy

async def work() -> float | None:
    run: sy.RunResult = sy.run("p", "chat", sy.Model("m"), k=3, reuse=True)
    whole: sy.LaunchResult = await sy.alaunch({"requests": []}, timeout_seconds=5)
    reveal_type(whole["x"].score().interval)
    sy.run("p", "chat", kk=3)
    sy.launch("f.yaml", limit="3")
    return run.score().value
"""


@pytest.mark.integration
def test_type_checkers_see_the_types_of_calls_and_results() -> None:
    # A fresh cache takes long; the checkout's own is of another configuration.
    cache = FILE.parents[2] / ".mypy_cache" / "sdk"
    mypy = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--cache-dir", str(cache)]
    ended = subprocess.run(
        [*mypy, "-c", TYPED], capture_output=True, text=True, check=False, timeout=300
    )
    said = [line.partition(": ")[2] for line in ended.stdout.splitlines()]
    assert [line for line in said if "defined in" not in line][:3] == [
        'note: Revealed type is "tuple[float, float] | None"',
        'error: Unexpected keyword argument "kk" for "run"  [call-arg]',
        'error: Argument "limit" to "launch" has incompatible type "str"; expected "int | None"'
        "  [arg-type]",
    ], ended.stdout
