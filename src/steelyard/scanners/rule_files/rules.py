"""Rules, compiled: does one hold of a thing that an agent did?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from steelyard.components.issue_patterns import is_found
from steelyard.components.patterns import Matcher, matcher
from steelyard.components.scanner import FindingSeverity, ScannerFault
from steelyard.scanners.acts import Act, Command, Reach, Touch
from steelyard.scanners.reporting import Hit
from steelyard.scanners.rule_files.schema import RuleFile, RuleSpec, Unless

MAX_TEXT_CHARS: Final = 1_000
"""Of an argument, or a line of content: a pattern with one open repetition is quick up to there."""
MAX_LINES: Final = 2_000
"""Of content."""
MAX_SEARCHES: Final = 500
"""Searches of one attempt that need a process of their own."""
_WILD: Final = re.compile(r"\*\*/|\*\*|\*|\?")
_WORD: Final = re.compile(r"[a-z0-9]+")
_NEVER: Final = re.compile(r"(?!)")


class Searches:
    """Searches for users' patterns in one attempt; those that may take long are counted."""

    def __init__(self) -> None:
        self._costly = 0

    def found(self, patterns: Iterable[Matcher], text: str) -> bool:
        """True where one of the patterns is found.

        Raises:
            ScannerFault: too many searches needed a process of their own.
        """
        for one in patterns:
            if not one.may_run_here(len(text)):
                self._costly += 1
                if self._costly > MAX_SEARCHES:
                    pattern = one.compiled.pattern[:80]
                    raise ScannerFault(
                        f"the pattern {pattern!r} was searched in a process of its own "
                        f"{MAX_SEARCHES} times: write it without nested or many open repetitions"
                    )
            if is_found(one, text, "the pattern of a scan rule"):
                return True
        return False


@dataclass(frozen=True, slots=True)
class _Exceptions:
    commands: re.Pattern[str]
    args: tuple[Matcher, ...]
    paths: re.Pattern[str]
    hosts: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule."""

    spec: RuleSpec
    commands: re.Pattern[str] | None
    args: tuple[Matcher, ...]
    paths: re.Pattern[str] | None
    content: tuple[Matcher, ...]
    hosts: re.Pattern[str] | None
    unless: _Exceptions

    def hit(self, act: Act, command: Command | None, searches: Searches) -> Hit | None:
        """Give what the rule finds in an act.

        Args:
            act: what was done.
            command: what did it, where that was a command.
            searches: of this attempt.
        """
        if not self._concerns(act):
            return None
        if self.commands is not None and (
            command is None or not self._is_command(command, searches)
        ):
            return None
        if isinstance(act, Touch) and not self._is_touch(act, searches):
            return None
        if isinstance(act, Reach) and (self.hosts is None or not self.hosts.match(act.host)):
            return None
        if self._is_excepted(act, command, searches):
            return None
        spec = self.spec
        return Hit(
            spec.category or spec.id,
            FindingSeverity(spec.severity),
            spec.message,
            act.text,
            spec.confidence,
        )

    def _concerns(self, act: Act) -> bool:
        if self.paths is not None:
            return isinstance(act, Touch)
        if self.hosts is not None:
            return isinstance(act, Reach)
        return isinstance(act, Command)

    def _is_command(self, command: Command, searches: Searches) -> bool:
        assert self.commands is not None  # noqa: S101 — asked by the caller
        return self.commands.match(command.name) is not None and all(
            any(searches.found((one,), text[:MAX_TEXT_CHARS]) for text in command.args)
            for one in self.args
        )

    def _is_touch(self, touch: Touch, searches: Searches) -> bool:
        if self.paths is None or not self.paths.match(touch.path):
            return False
        if self.spec.does is not None and touch.how.value not in self.spec.does:
            return False
        if not self.content:
            return True
        lines = (touch.content or "").split("\n", MAX_LINES)[:MAX_LINES]
        return any(searches.found(self.content, line[:MAX_TEXT_CHARS]) for line in lines)

    def _is_excepted(self, act: Act, command: Command | None, searches: Searches) -> bool:
        unless = self.unless
        if isinstance(act, Touch) and unless.paths.match(act.path):
            return True
        if isinstance(act, Reach) and unless.hosts.match(act.host):
            return True
        if command is None:
            return False
        if unless.commands.match(command.name):
            return True
        return any(searches.found(unless.args, one[:MAX_TEXT_CHARS]) for one in command.args)


def compiled(file: RuleFile) -> tuple[Rule, ...]:
    """Compile the rules of a file that was found in order."""
    return tuple(_rule(spec) for spec in file.rules)


def may_block(rules: Sequence[Rule]) -> bool:
    """True where a pattern may have to be searched in a process of its own."""
    return any(
        not one.may_run_here(MAX_TEXT_CHARS)
        for rule in rules
        for one in (*rule.args, *rule.content, *rule.unless.args)
    )


def triggers_of(file: RuleFile) -> frozenset[str] | None:
    """Give words of which one stands in every text that a rule could find something in.

    None where a rule has no such words: everything is read.
    """
    found: set[str] = set()
    for spec in file.rules:
        needed = _needed(spec.commands) or _needed(spec.hosts) or _needed(spec.paths)
        if not needed:
            return None
        found |= needed
    return frozenset(found)


def _needed(wild: Sequence[str] | None) -> set[str]:
    """Give a word of each of the alternatives; empty where one of them has none."""
    found = set()
    for one in wild or ():
        # A word beside a star may go on, and would stand in no text by itself.
        whole = re.sub(r"[A-Za-z0-9]*[*?\[{~$]+[A-Za-z0-9]*", " ", one).lower()
        words = sorted(_WORD.findall(whole), key=len)
        if not words:
            return set()
        found.add(words[-1])
    return found


def _rule(spec: RuleSpec) -> Rule:
    unless = spec.unless or Unless()
    return Rule(
        spec,
        _names(spec.commands) if spec.commands is not None else None,
        tuple(matcher(one) for one in spec.args or ()),
        _paths(spec.paths) if spec.paths is not None else None,
        tuple(matcher(one) for one in spec.content or ()),
        _names(spec.hosts) if spec.hosts is not None else None,
        _Exceptions(
            _names(unless.commands),
            tuple(matcher(one) for one in unless.args or ()),
            _paths(unless.paths),
            _names(unless.hosts),
        ),
    )


def _names(wild: Sequence[str] | None) -> re.Pattern[str]:
    return _any_of(wild, "[^/]*", "[^/]*")


def _paths(wild: Sequence[str] | None) -> re.Pattern[str]:
    return _any_of(wild, "[^/]*", ".*")


def _any_of(wild: Sequence[str] | None, star: str, two_stars: str) -> re.Pattern[str]:
    """Compile alternatives with stars: ours, so linear but for the stars, which are few."""
    if not wild:
        return _NEVER

    def one(text: str) -> str:
        parts, at = [], 0
        for found in _WILD.finditer(text):
            parts.append(re.escape(text[at : found.start()]))
            sign = found.group()
            if sign == "**/":
                parts.append(f"(?:{two_stars}/)?")
            else:
                parts.append({"**": two_stars, "*": star, "?": "[^/]"}[sign])
            at = found.end()
        return "".join([*parts, re.escape(text[at:])])

    return re.compile("(?:" + "|".join(one(text) for text in wild) + r")\Z", re.DOTALL)


def hits_of(
    rules: Sequence[Rule], act: Act, command: Command | None, searches: Searches
) -> Iterator[Hit]:
    """Give what the rules find in an act."""
    for rule in rules:
        hit = rule.hit(act, command, searches)
        if hit is not None:
            yield hit
