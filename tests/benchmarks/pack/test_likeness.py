from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.benchmarks.pack.bounded.likeness import ALGORITHMS, best_ratio, f1, words_of
from steelyard.benchmarks.pack.validators.likeness import MAX_F1_CHARS
from tests.benchmarks.pack.scored import scored
from tests.benchmarks.scoring import problems_of, write_pack

TEN_MB = 10 * 1024 * 1024
WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8)


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(ALGORITHMS))
def test_a_likeness_is_a_fraction_and_1_for_the_same(one: str, other: str, algorithm: str) -> None:
    assert 0 <= best_ratio(one, [other], algorithm) <= 1
    is_all_gaps = not one.split() and algorithm.startswith("token")
    if one and not is_all_gaps:
        assert best_ratio(one, [other, one], algorithm) == 1


@given(st.text(max_size=40), st.text(max_size=40))
def test_edit_distances_do_not_depend_on_the_order(one: str, other: str) -> None:
    for algorithm in ("ratio", "levenshtein", "token_sort_ratio"):
        assert best_ratio(one, [other], algorithm) == best_ratio(other, [one], algorithm)


@given(WORDS, WORDS)
def test_f1_is_symmetric_bounded_and_1_for_the_same_bag(one: list[str], other: list[str]) -> None:
    value = f1(one, other)
    assert value == f1(other, one)
    assert 0 <= value <= 1
    assert (value == 1) == (sorted(one) == sorted(other))


@given(st.text(max_size=60))
def test_a_text_has_the_words_of_itself(text: str) -> None:
    for unicode in (True, False):
        words = words_of(text, unicode=unicode)
        assert f1(words, words) == 1
        assert all(word.strip() == word != "" for word in words)


@pytest.mark.parametrize(
    ("text", "unicode", "words"),
    [
        ("The  Cat, a dog!", False, ["cat", "dog"]),
        ("U.S.A.", False, ["usa"]),
        ("don't", False, ["dont"]),
        ("theatre", False, ["theatre"]),
        ("Straße «la» — fin", True, ["strasse", "la", "fin"]),
        ("東京 Tower", True, ["東", "京", "tower"]),
        ("ﬁne", True, ["fine"]),
        ("the end", True, ["the", "end"]),
        ("", True, []),
    ],
)
def test_words(text: str, unicode: bool, words: list[str]) -> None:
    assert words_of(text, unicode=unicode) == words


@pytest.mark.parametrize(
    ("validators", "answer", "value"),
    [
        ("[{type: fuzzy, expected: kitten, algorithm: levenshtein}]", "sitting", 1 - 3 / 7),
        ("[{type: fuzzy, expected: kitten}]", "kitten\n", 1),
        ("[{type: fuzzy, expected: kitten, trim: false}]", "kitten\n", 12 / 13),
        ("[{type: fuzzy, expected: Kitten, ignore_case: true}]", "kITTEN", 1),
        ("[{type: fuzzy, expected: [dog, kitten], threshold: 0.9}]", "kitten", 1),
        ("[{type: fuzzy, expected: [dog, kitten], threshold: 0.9}]", "kittens are", 0),
        ('[{type: fuzzy, expected: "{{ all }}"}]', "two", 1),
        ("[{type: fuzzy, expected: b a, algorithm: token_sort_ratio}]", "a b", 1),
        ("[{type: fuzzy, expected: abc, algorithm: partial_ratio}]", "xxabcxx", 1),
        ("[{type: token_f1, expected: the red cat}]", "A cat.", 2 / 3),
        ("[{type: token_f1, expected: [dog, the red cat], threshold: 0.6}]", "A cat.", 1),
        ("[{type: token_f1, expected: x, threshold: 0.6}]", "", 0),
        ("[{type: token_f1, expected: x}]", None, 0),
    ],
)
def test_values(tmp_path: Path, validators: str, answer: str | None, value: float) -> None:
    found, reason = scored(tmp_path, validators, answer, case={"all": ["one", "two"]})
    assert found == pytest.approx(value)
    assert bool(reason) == (value < 1)


@pytest.mark.integration
@pytest.mark.parametrize("kind", [*ALGORITHMS, "f1"])
@pytest.mark.parametrize("piece", ["hello wordl ", "\ud800 "])
def test_ten_megabytes_are_compared_in_bounded_time(tmp_path: Path, kind: str, piece: str) -> None:
    validators = f"[{{type: fuzzy, expected: hello world, algorithm: {kind}}}]"
    if kind == "f1":
        validators = "[{type: token_f1, expected: hello world}]"
    value, _ = scored(tmp_path, validators, piece * (TEN_MB // len(piece)))
    assert 0 <= value <= 1


@pytest.mark.integration
def test_words_are_compared_up_to_a_length(tmp_path: Path) -> None:
    validators = "[{type: token_f1, expected: hello world, words: unicode}]"
    for piece in ("東", "a "):
        text = piece * (MAX_F1_CHARS // len(piece))
        assert "expected" in scored(tmp_path, validators, text)[1]
        assert "too long" in scored(tmp_path, validators, text + "xx")[1]


def test_an_answer_far_too_long_for_the_expected_text_is_0_without_comparing(
    tmp_path: Path,
) -> None:
    for algorithm, length in (("ratio", 50_000), ("partial_ratio", 2_000)):
        validators = f'[{{type: fuzzy, expected: "{{{{ e }}}}", algorithm: {algorithm}}}]'
        value, reason = scored(tmp_path, validators, "b" * TEN_MB, case={"e": "a" * length})
        assert value == 0
        assert "too long to compare" in reason


@pytest.mark.parametrize(("algorithm", "most"), [("ratio", 100_000), ("partial_ratio", 2_000)])
def test_an_expected_text_too_long_to_compare_with_is_refused(
    tmp_path: Path, algorithm: str, most: int
) -> None:
    validators = f'[{{type: fuzzy, expected: "{{{{ e }}}}", algorithm: {algorithm}}}]'
    cases: list[dict[str, Any]] = [{"id": "a", "q": "?", "e": "x" * (most + 1)}]
    (problem,) = problems_of(write_pack(tmp_path, validators, cases))
    assert "cases.jsonl:1" in problem
    assert f"at most {most}" in problem
