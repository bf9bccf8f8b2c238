"""How alike two texts are: edit distances of named algorithms, and overlap of words."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Final

ALGORITHMS: Final = (
    "ratio",
    "partial_ratio",
    "token_sort_ratio",
    "token_set_ratio",
    "jaro_winkler",
    "levenshtein",
)
_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION: Final = dict.fromkeys(map(ord, string.punctuation))
# Written without spaces: every character is a word.
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def best_ratio(text: str, expected: list[str], algorithm: str) -> float:
    """Give the highest similarity to any of the expected texts, from 0 to 1.

    `ratio` is 1 - d/(n+m) with d the least number of insertions and deletions; `levenshtein` is
    1 - d/max(n, m) with substitutions counted once; `jaro_winkler` as Winkler (1990); the other
    three are rapidfuzz's own, built on `ratio`.
    """
    from rapidfuzz import fuzz
    from rapidfuzz.distance import JaroWinkler, Levenshtein

    if algorithm == "levenshtein":
        return max(Levenshtein.normalized_similarity(text, one) for one in expected)
    if algorithm == "jaro_winkler":
        return max(JaroWinkler.normalized_similarity(text, one) for one in expected)
    scorer: Callable[[str, str], float] = getattr(fuzz, algorithm)
    return max(min(1.0, scorer(text, one) / 100) for one in expected)


def cost_of(length: int, expected: int, algorithm: str) -> float:
    """Tell what comparing two texts costs: 10^10 take about half a second.

    All algorithms compare 64 pairs of characters at once; `partial_ratio` does so for every window.
    """
    shorter, longer = sorted((length, expected))
    if algorithm == "partial_ratio":
        return float(shorter) ** 2 * longer
    return float(shorter) * longer


def best_f1(text: str, expected: list[str], unicode: bool) -> float:
    """Give the highest F1 of words with any of the expected texts."""
    words = words_of(text, unicode=unicode)
    return max(f1(words, words_of(one, unicode=unicode)) for one in expected)


def f1(words: list[str], expected: list[str]) -> float:
    """Give 2pr/(p+r) of two bags of words (Rajpurkar et al. 2016, section 6.1).

    Two empty bags are alike, an empty one is like no other (as SQuAD 2.0 scores no answer).
    """
    if not words or not expected:
        return float(words == expected)
    shared = sum((Counter(words) & Counter(expected)).values())
    return 2 * shared / (len(words) + len(expected))


def words_of(text: str, *, unicode: bool) -> list[str]:
    """Split a text into normalised words.

    As SQuAD's own script does: lower case, ASCII punctuation taken out, `a`, `an` and `the` taken
    out, split at white space. With `unicode`: NFKC, case folded, all punctuation and symbols are
    gaps, no word is taken out, and in scripts written without spaces each character is a word.
    """
    if not unicode:
        return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()
    folded = unicodedata.normalize("NFKC", text).casefold()
    gaps = {ord(sign): " " for sign in set(folded) if unicodedata.category(sign)[0] in "PS"}
    return _UNSPACED.sub(r" \g<0> ", folded.translate(gaps)).split()
