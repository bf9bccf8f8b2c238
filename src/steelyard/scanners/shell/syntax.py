"""Read shell text into a tree, by tree-sitter's grammar of bash. Nothing that is written fails.

A text that is broken is read as far as it goes; one that would take the parser long is read line
by line, and at last not at all: its steps are counted, so that the answer is always the same.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from steelyard.scanners.acts import words
from steelyard.scanners.shell.documents import MARK, Document, without_documents
from steelyard.scanners.shell.tree import (
    EMPTY,
    Function,
    Loop,
    Node,
    Part,
    Pipeline,
    Redirect,
    Sequence_,
    Simple,
    Substitution,
    Variable,
    Word,
)

if TYPE_CHECKING:
    from tree_sitter import Node as Syntax
    from tree_sitter import Parser

MAX_BYTES: Final = 32 * 1024
"""Of a script without its here-documents; what is longer is read up to here."""
MAX_WITH_DOCUMENTS: Final = 512 * 1024
MAX_DEPTH: Final = 40
_CALLS: Final = 400
"""Of the parser's progress: some 25 ms."""
_LINES: Final = 200
_SHORT_BYTES: Final = 1024
_OPEN_DOCUMENTS: Final = 8
_ESCAPED: Final = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES: Final = re.compile(r'\\([\\"$`\n])')
_ANSI: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL
)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "a": "\a", "b": "\b", "0": "\0"}
_GROUPS: Final = words(
    "list do_group if_statement elif_clause else_clause while_statement case_statement "
    "case_item compound_statement negated_command program c_style_for_statement ERROR "
    "test_command unset_command variable_assignments"
)


@lru_cache(maxsize=2048)
def parsed(text: str) -> Sequence_:
    """Read a script; what is no syntax is left out."""
    # One character a byte, so that the parser's places are ours.
    written = text[:MAX_WITH_DOCUMENTS].replace("\0", " ").encode("utf-8", "surrogatepass")
    shell, documents = without_documents(written.decode("latin-1"))
    shell = shell[:MAX_BYTES]
    if shell.count("<<") > _OPEN_DOCUMENTS:
        # The grammar looks for the end of each anew, through all of the text.
        shell = shell.replace("<<", "  ")
    data = shell.encode("latin-1")
    budget = [_CALLS]
    tree = _tree(data, written, documents, budget)
    if tree is not None:
        return tree
    nodes: list[Node] = []
    at = 0
    for line in data.split(b"\n")[:_LINES]:
        # Each line has a little of its own: one that is hostile does not hide the next.
        budget = [max(1, _CALLS // _LINES)]
        part = _tree(line, written[at:], documents, budget) if line.strip() else None
        nodes += part.nodes if part is not None else ()
        at += len(line) + 1
    return Sequence_(tuple(nodes))


_OF_THREAD: Final = threading.local()
"""A parser must not be used by two threads at once."""


def _parser() -> Parser:
    known: Parser | None = getattr(_OF_THREAD, "parser", None)
    if known is not None:
        return known
    # Heavy, and of no use to who scans nothing: imported when the first command is read.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    _OF_THREAD.parser = made = Parser(Language(tree_sitter_bash.language()))
    return made


def _tree(
    data: bytes, written: bytes, documents: dict[str, Document], budget: list[int]
) -> Sequence_ | None:

    def is_over(*_: object) -> bool:
        budget[0] -= 1
        return budget[0] < 0

    parser = _parser()
    if len(data) <= _SHORT_BYTES:  # too short to take long: no need to count its steps
        return _Reader(data, written, documents).sequence(parser.parse(data).root_node, 0)
    try:
        tree = parser.parse(lambda at, _point: data[at : at + 8192], progress_callback=is_over)
    except ValueError:  # stopped by `is_over`
        parser.reset()
        return None
    return _Reader(data, written, documents).sequence(tree.root_node, 0)


class _Reader:
    """Makes our tree of the parser's."""

    def __init__(self, data: bytes, written: bytes, documents: dict[str, Document]) -> None:
        self._data, self._written, self._documents = data, written, documents

    def sequence(self, syntax: Syntax, depth: int) -> Sequence_:
        nodes: list[Node] = []
        if depth < MAX_DEPTH:
            for child in syntax.children:
                self._add(child, nodes, depth + 1)
        return Sequence_(tuple(nodes))

    def _add(self, syntax: Syntax, nodes: list[Node], depth: int) -> None:
        kind = syntax.type
        if depth > MAX_DEPTH or not syntax.is_named:
            return
        if kind == "command":
            nodes.append(self._command(syntax, (), depth))
        elif kind in ("declaration_command", "variable_assignment"):
            nodes.append(self._declaration(syntax, depth))
        elif kind == "pipeline":
            stages: list[Node] = []
            for child in syntax.children:
                self._add(child, stages, depth + 1)
            nodes.append(Pipeline(tuple(stages)))
        elif kind == "redirected_statement":
            nodes.append(self._redirected(syntax, depth))
        elif kind == "subshell":
            inner = self.sequence(syntax, depth)
            nodes.append(Sequence_(inner.nodes, is_subshell=True))
        elif kind == "for_statement":
            nodes.append(self._loop(syntax, depth))
        elif kind == "function_definition":
            nodes.append(self._function(syntax, depth))
        elif kind in _GROUPS:
            for child in syntax.children:
                self._add(child, nodes, depth + 1)
        elif kind in ("command_substitution", "process_substitution"):
            nodes.append(self.sequence(syntax, depth))

    def _command(self, syntax: Syntax, more: tuple[Redirect, ...], depth: int) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects = list(more)
        for child in syntax.children:
            kind = child.type
            if kind == "variable_assignment":
                assignments.append(self._assignment(child, depth))
            elif kind in ("file_redirect", "herestring_redirect"):
                redirects.append(self._redirect(child, depth))
            elif kind == "command_name":
                words += [self._word(part, depth) for part in child.children]
            elif kind != "comment":
                words.append(self._word(child, depth))
        return Simple(self._as_written(syntax), tuple(assignments), tuple(words), tuple(redirects))

    def _declaration(self, syntax: Syntax, depth: int) -> Simple:
        """`export A=b`, or `A=b` alone: a command that only sets."""
        children = syntax.children if syntax.type == "declaration_command" else [syntax]
        set_here = [
            self._assignment(one, depth) for one in children if one.type == "variable_assignment"
        ]
        words = () if syntax.type == "variable_assignment" else (Word(("export",)),)
        return Simple(self._as_written(syntax), tuple(set_here), words, ())

    def _assignment(self, syntax: Syntax, depth: int) -> tuple[str, Word]:
        name = syntax.child_by_field_name("name")
        value = syntax.child_by_field_name("value")
        word = Word(()) if value is None else self._word(value, depth)
        return (self._text(name) if name is not None else ""), word

    def _redirected(self, syntax: Syntax, depth: int) -> Node:
        redirects = tuple(
            self._redirect(child, depth)
            for child in syntax.children
            if child.type in ("file_redirect", "herestring_redirect")
        )
        inner: list[Node] = []
        for child in syntax.children:
            if child.type == "command":
                one = self._command(child, redirects, depth)
                words = one.words + self._after_redirects(syntax, depth)
                inner.append(
                    Simple(self._as_written(syntax), one.assignments, words, one.redirects)
                )
            elif "redirect" not in child.type:
                self._add(child, inner, depth + 1)
        if len(inner) == 1 and isinstance(inner[0], Simple):
            return inner[0]
        if not inner:
            return Simple(self._as_written(syntax), (), (), redirects)
        if len(inner) == 1 and isinstance(inner[0], Pipeline):
            # `a | b > f` is read as the redirection of the whole: it is the last one's.
            *first, last = inner[0].stages
            if isinstance(last, Simple):
                last = Simple(last.text, last.assignments, last.words, last.redirects + redirects)
            return Pipeline((*first, last))
        if all(isinstance(one, Simple) for one in inner) and inner:
            *early, end = inner
            if isinstance(end, Simple) and redirects and syntax.children[0].type == "list":
                # `a && b > f` likewise.
                end = Simple(end.text, end.assignments, end.words, end.redirects + redirects)
                return Sequence_((*early, end))
        return Sequence_(tuple(inner), False, redirects, self._as_written(syntax))

    def _after_redirects(self, syntax: Syntax, depth: int) -> tuple[Word, ...]:
        """Give the words of a command that stand after a redirection: the grammar's targets."""
        return tuple(
            self._word(target, depth)
            for child in syntax.children
            if child.type == "file_redirect"
            for target in child.children_by_field_name("destination")[1:]
        )

    def _redirect(self, syntax: Syntax, depth: int) -> Redirect:
        fd: int | None = None
        op, target = "", Word(())
        for child in syntax.children:
            if child.type == "file_descriptor":
                fd = int(self._text(child)[:4]) if self._text(child).isdecimal() else None
            elif child.type == "ERROR" or not child.is_named:
                op += self._text(child)
            elif not target.parts:
                target = self._word(child, depth)
        if op == "<" and len(target.parts) == 1:
            name = target.parts[0]
            if isinstance(name, str) and name.startswith(MARK) and name in self._documents:
                body = self._documents[name].text.encode("latin-1")
                return Redirect("<<", fd, Word(()), body.decode("utf-8", "surrogatepass"))
        return Redirect(op, fd, target)

    def _loop(self, syntax: Syntax, depth: int) -> Loop:
        variable, body = "", EMPTY
        words: list[Word] = []
        for child in syntax.children:
            if child.type == "variable_name":
                variable = self._text(child)
            elif child.type == "do_group":
                body = self.sequence(child, depth)
            elif child.is_named:
                words.append(self._word(child, depth))
        return Loop(variable, tuple(words), body)

    def _function(self, syntax: Syntax, depth: int) -> Function:
        name = syntax.child_by_field_name("name")
        body = syntax.child_by_field_name("body")
        return Function(
            self._text(name) if name is not None else "",
            EMPTY if body is None else self.sequence(body, depth),
            self._as_written(syntax),
        )

    def _word(self, syntax: Syntax, depth: int) -> Word:
        parts: list[Part] = []
        quoted = self._parts(syntax, parts, depth, in_quotes=False)
        return Word(tuple(parts), quoted)

    def _parts(self, syntax: Syntax, parts: list[Part], depth: int, *, in_quotes: bool) -> bool:
        """Add the parts of a word; True where any of it stands in quotes."""
        kind = syntax.type
        if kind in ("word", "number", "variable_name", "special_variable_name"):
            parts.append(_unescaped(self._text(syntax)))
            return False
        if kind == "raw_string":
            parts.append(self._text(syntax)[1:-1])
            return True
        if kind == "ansi_c_string":
            parts.append(_ansi(self._text(syntax)[2:-1]))
            return True
        if kind in ("simple_expansion", "expansion"):
            parts.append(self._variable(syntax, in_quotes=in_quotes))
            return False
        if kind in ("command_substitution", "process_substitution"):
            parts.append(Substitution(self.sequence(syntax, depth + 1), self._as_written(syntax)))
            return False
        if depth < MAX_DEPTH and kind in ("string", "translated_string"):
            self._string(syntax, parts, depth)
            return True
        if depth < MAX_DEPTH and kind in ("concatenation", "command_name"):
            quoted = [
                self._parts(child, parts, depth + 1, in_quotes=in_quotes)
                for child in syntax.children
            ]
            return any(quoted)
        parts.append(_unescaped(self._text(syntax)))
        return False

    def _string(self, syntax: Syntax, parts: list[Part], depth: int) -> None:
        """A text in double quotes: what stands between its expansions is literal."""
        at = syntax.start_byte + 1
        for child in syntax.children:
            if child.type not in (
                "simple_expansion", "expansion", "command_substitution", "arithmetic_expansion",
            ):  # fmt: skip
                continue
            self._literal(at, child.start_byte, parts)
            self._parts(child, parts, depth + 1, in_quotes=True)
            at = child.end_byte
        end = syntax.end_byte
        self._literal(at, end - (self._data[end - 1 : end] == b'"' and end > at), parts)

    def _literal(self, start: int, end: int, parts: list[Part]) -> None:
        if end > start:
            text = self._data[start:end].decode("utf-8", "replace")
            parts.append(_ESCAPED_IN_QUOTES.sub(_kept, text))

    def _variable(self, syntax: Syntax, *, in_quotes: bool) -> Variable:
        names = [
            one for one in syntax.children if one.type in ("variable_name", "special_variable_name")
        ]
        if self._text(syntax).startswith("${#"):
            return Variable("#", "0", not in_quotes)  # a length, not the value
        name = self._text(names[0]) if names else self._text(syntax).strip("${}")
        default = None
        rest = self._text(syntax)[len(name) + 2 : -1] if syntax.type == "expansion" else ""
        if rest[:2] == ":+" or rest[:1] == "+":
            return Variable("+", rest.lstrip(":+"), not in_quotes)  # what stands there instead
        if rest[:2] in (":-", ":=") or rest[:1] in ("-", "="):
            default = rest.lstrip(":-=")
        return Variable(name, default, not in_quotes)

    def _as_written(self, syntax: Syntax) -> str:
        """Give the text with what stood in it before documents were taken out."""
        data = self._written[syntax.start_byte : syntax.end_byte]
        return data.decode("utf-8", "replace")

    def _text(self, syntax: Syntax) -> str:
        data = self._data[syntax.start_byte : syntax.end_byte]
        return data.decode("utf-8", "replace")


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(_kept, text) if "\\" in text else text


def _kept(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _ansi(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        if code := found[1] or found[2]:
            return chr(int(code, 16))
        if found[3]:
            return chr(int(found[3], 8) & 0xFF)
        return _LETTERS.get(found[4], found[4])

    return _ANSI.sub(one, text)
