"""The validators that read texts: exact, one_of, contains, regex, number, choice."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.benchmarks.pack.bounded.closeness import is_close
from steelyard.benchmarks.pack.matching import is_found, last_group, matcher
from steelyard.benchmarks.pack.validators.choices import picked
from steelyard.benchmarks.pack.validators.numbers import as_number, numbers_in
from steelyard.benchmarks.pack.validators.texts import normal
from steelyard.components.issues import AttemptFault, IssueCode
from tests.benchmarks.scoring import Context, opened, score, write_pack


def passes(tmp_path: Path, validator: str, answer: str | None, **fields: Any) -> bool:
    pack = write_pack(tmp_path, f"[{validator}]", [{"id": "a", "q": "?", **fields}])
    benchmark = opened(pack)
    found = score(benchmark, benchmark.load_tasks()[0], Context(answer))
    assert set(found.metrics) == {"score", *(m for m in found.metrics if m.startswith("validator"))}
    return found.metrics["score"] == 1


@pytest.mark.parametrize(
    ("validator", "answer", "expected"),
    [
        ("{type: exact, expected: yes please}", " yes please\n", True),
        ("{type: exact, expected: yes}", "\u00a0yes\u2003", True),
        ("{type: exact, expected: Yes}", "yes", False),
        ("{type: exact, expected: Yes, ignore_case: true}", "yES", True),
        ("{type: exact, expected: STRASSE, ignore_case: true}", "straße", True),
        ("{type: exact, expected: a  b}", "a b", False),
        ("{type: exact, expected: a, trim: false}", "a\n", False),
        ("{type: exact, expected: 42}", "42", True),
        ("{type: exact, expected: ''}", "", True),
        ("{type: exact, expected: a}", None, False),
        ("{type: one_of, expected: [a, b]}", "b ", True),
        ("{type: one_of, expected: [a, b]}", "c", False),
        ("{type: one_of, expected: [1, 2]}", "2", True),
        ("{type: one_of, expected: [a, b], ignore_case: true}", "B", True),
        ("{type: contains, expected: needle}", "a needle here", True),
        ("{type: contains, expected: [a, z]}", "abc", False),
        ("{type: contains, expected: [a, z], match: any}", "abc", True),
        ("{type: contains, expected: [A, b], ignore_case: true}", "abc", True),
        ("{type: regex, pattern: '^b+$'}", "a\nbb", False),
        ("{type: regex, pattern: '^b+$', multiline: true}", "a\nbb", True),
        ("{type: regex, pattern: 'b+', full: true}", " bb\n", True),
        ("{type: regex, pattern: 'b+', full: true}", "abb", False),
        ("{type: regex, pattern: 'B', ignore_case: true}", "b", True),
        ("{type: regex, pattern: 'a.b'}", "a\nb", False),
        ("{type: regex, pattern: 'a.b', dotall: true}", "a\nb", True),
        ("{type: number, expected: 3}", "I count 1, 2, and so 3.", True),
        ("{type: number, expected: 3, find: first}", "3 of 7", True),
        ("{type: number, expected: 3, find: only}", "It is 3", False),
        ("{type: number, expected: 3, find: only}", " $3.00 ", True),
        ("{type: number, expected: 3.14, tolerance: 0.01}", "3.1459", True),
        ("{type: number, expected: 3.14, tolerance: 0.001}", "3.1459", False),
        ("{type: number, expected: 1000, relative: 0.01}", "1,009.9", True),
        ("{type: number, expected: 1, tolerance: 0.1}", "1.1", True),
        ("{type: number, expected: 1, tolerance: 0.1}", "1.10001", False),
        ("{type: number, expected: 9007199254740992}", "9,007,199,254,740,993", False),
        ("{type: fuzzy, expected: xaaaa, threshold: 0.2}", "xbbbb", True),
        ("{type: fuzzy, expected: xaaaa, threshold: 0.21}", "xbbbb", False),
        ("{type: number, expected: -2}", "minus two", False),
        ("{type: number, expected: -2}", "x = \u22122", True),
        ("{type: choice, expected: B}", "b", True),
        ("{type: choice, expected: B, options: [cat, dog]}", "dog", True),
        ("{type: choice, expected: dog, options: [cat, dog]}", "(B)", True),
        ("{type: choice, expected: dog, options: [cat, dog]}", "cat and dog", False),
    ],
)
def test_texts_are_judged(
    tmp_path: Path, validator: str, answer: str | None, expected: bool
) -> None:
    assert passes(tmp_path, validator, answer) is expected


def test_fields_of_the_case_are_what_is_expected(tmp_path: Path) -> None:
    assert passes(tmp_path / "1", "{type: exact, expected: '{{ e }}'}", "7", e=7)
    assert passes(tmp_path / "2", "{type: one_of, expected: '{{ e }}'}", "y", e=["x", "y"])
    assert passes(tmp_path / "3", "{type: contains, expected: '{{ e }}'}", "xy", e=["x", "y"])
    assert passes(tmp_path / "4", "{type: regex, pattern: '^{{ e }}$'}", "aa", e="a+")
    assert passes(tmp_path / "5", "{type: number, expected: '{{ e }}'}", "0.5", e=0.5)
    choice = "{type: choice, options: '{{ o }}', expected: '{{ e }}'}"
    assert passes(tmp_path / "6", choice, "A", o=["x", "y"], e="x")


@given(st.text(), st.booleans())
def test_normalising_twice_changes_nothing_more(text: str, ignore_case: bool) -> None:
    once = normal(text, trim=True, ignore_case=ignore_case)
    # Folding may uncover white space nowhere: one pass is enough.
    assert normal(once, trim=True, ignore_case=ignore_case) == once
    assert once == once.strip()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_that_python_writes_is_read_back(value: float) -> None:
    assert as_number(repr(value)) == value
    assert as_number(f"  {value!r}\n") == value


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_thousands_separators_mean_nothing(value: int) -> None:
    assert as_number(f"{value:,}") == value
    assert numbers_in(f"that makes {value:,} in all") == [value]


@given(st.text())
def test_any_text_gives_only_finite_numbers(text: str) -> None:
    assert all(math.isfinite(value) for value in numbers_in(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GPT-4 says 5", [4, 5]),
        ("v1.2.3", []),
        ("3-4", [3, 4]),
        ("1,2,3", [1, 2, 3]),
        ("12,345,678.5", [12345678.5]),
        ("1e400", []),
        ("inf nan", []),
        ("x=-.5", [-0.5]),
        ("2e3 kg", [2000]),
        ("£7.", [7]),
        ("٣", []),
        ("", []),
    ],
)
def test_numbers_are_found_where_people_would_see_them(text: str, found: list[float]) -> None:
    assert numbers_in(text) == found


@pytest.mark.parametrize("part", ["1", "1,", "111,", ",111", "1.", ".1", "-", "1e", "1e9", "9 "])
def test_no_text_of_an_answer_makes_the_search_slow(part: str) -> None:
    """A quadratic search would take minutes here, not milliseconds."""
    assert len(numbers_in(part * 100_000)) <= 100_000


@pytest.mark.parametrize("text", ["nan", "inf", "1 2", "0x10", "1_000", "", "one", "9" * 1000])
def test_what_is_not_a_number_alone_is_none(text: str) -> None:
    assert as_number(text) is None


@given(st.floats(-1e9, 1e9), st.floats(0, 1e6), st.floats(0, 1))
def test_a_number_is_close_to_itself_whatever_the_tolerance(
    value: float, tolerance: float, relative: float
) -> None:
    assert is_close(value, value, tolerance=tolerance, relative=relative)


@pytest.mark.parametrize(
    ("text", "options", "letter"),
    [
        ("B", None, "B"),
        ("**B**", None, "B"),
        ("(b)", None, "B"),
        ("B. Because it is", None, "B"),
        ("The answer is C because of A and B.", None, "C"),
        ("Answer: D", None, "D"),
        ("First I thought the answer is A. But no: the answer is B.", None, "B"),
        ("The answer is a matter of taste", None, None),
        ("Answer: I think it is hard", None, None),
        ("the final answer is (a)", None, "A"),
        ("Some thought.\n\nC", None, "C"),
        ("It could be A or B", None, None),
        ("", None, None),
        ("Paris", ["London", "Paris"], "B"),
        ("I say paris, of course", ["London", "Paris"], "B"),
        ("Not London but Paris", ["London", "Paris"], None),
        ("C", ["x", "y"], None),
        ("a refundable case", ["refund", "deny"], None),
        ("Well.\nrefund", ["refund", "deny"], "A"),
        ("B", ["A", "B"], "B"),
    ],
)
def test_what_an_answer_picks(text: str, options: list[str] | None, letter: str | None) -> None:
    assert picked(text, options) == letter


@given(st.text(), st.lists(st.text(min_size=1), min_size=2, max_size=6))
def test_a_pick_is_one_of_the_letters_or_none(text: str, options: list[str]) -> None:
    assert picked(text, options) in {None, *"ABCDEF"[: len(options)]}


def test_simple_patterns_run_here_and_dangerous_ones_do_not() -> None:
    assert matcher(r"\b(yes|no)\b").may_run_here(10_000)
    assert matcher(r"answer: (\d+)").may_run_here(1_000)
    for dangerous in (r"(a+)+$", r"(a|a)*b", r"(a*)*", r"(.)\1+", "a?" * 30 + "a" * 30):
        assert not matcher(dangerous).may_run_here(1_000)
    assert not matcher(r"a*b*c*d").may_run_here(10_000)


@pytest.mark.integration
def test_a_pattern_that_never_ends_is_a_fault_and_does_not_hold_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("steelyard.benchmarks.pack.timebox.CPU_S", 1)
    ticks = 0

    async def whole() -> None:
        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticker = asyncio.ensure_future(tick())
        try:
            await is_found(matcher("(a+)+$"), "a" * 60 + "b", full=False)
        finally:
            ticker.cancel()

    with pytest.raises(AttemptFault) as caught:
        asyncio.run(whole())
    assert caught.value.code is IssueCode.SCORER_TIMED_OUT
    assert ticks >= 5


@pytest.mark.integration
@pytest.mark.parametrize("text", ["aaab", "x" * 5000 + "aab\ud800", ""])
def test_both_ways_of_matching_say_the_same(text: str) -> None:
    async def whole() -> None:
        for pattern in ("(?:a+)+b", "a(a)?b", "^x*"):
            found = matcher(pattern)
            last = ([None, *found.compiled.finditer(text)])[-1]
            assert await is_found(found, text, full=False) == bool(found.compiled.search(text))
            expected = None if last is None else last[1] if found.compiled.groups else last[0]
            assert await last_group(found, text) == expected

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("expected", "options", "answer", "reason"),
    [
        ("sales", "[accounts, sales]", "accounts", "expected 'sales', found 'accounts'"),
        ("sales", "[accounts, sales]", "A", "expected 'sales', found 'accounts'"),
        ("sales", "[accounts, sales]", "neither", "expected 'sales', found no choice"),
        ("B", "[accounts, sales]", "accounts", "expected B, found A"),
        ("B", None, "A", "expected B, found A"),
    ],
)
def test_a_choice_is_named_as_the_pack_names_it(
    tmp_path: Path, expected: str, options: str | None, answer: str, reason: str
) -> None:
    more = f", options: {options}" if options else ""
    benchmark = opened(write_pack(tmp_path, f"[{{type: choice, expected: {expected}{more}}}]"))
    (task,) = benchmark.load_tasks()
    assert score(benchmark, task, Context(answer)).details["reasons"]["choice"] == reason
