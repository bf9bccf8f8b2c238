"""What is sent makes the terminal show the lines, whatever stood there before."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.cli.screen import Line, Span
from steelyard.cli.screen_paint import Painter
from tests.cli.terminal import Emulator

WIDTH, HEIGHT = 20, 8
WORDS = st.text(alphabet="abcXYZ 0123", max_size=WIDTH - 1)
TEXTS = st.text(alphabet="abcXYZ0123", max_size=3 * WIDTH)
"""What is said wraps where it is too wide; it is never cut."""
FRAMES = st.lists(
    st.tuples(st.lists(WORDS, max_size=HEIGHT - 1), st.lists(TEXTS, max_size=3)), max_size=8
)


def line(text: str) -> Line:
    return (Span(text, "bar"),)


def wrapped(text: str) -> list[str]:
    return [text[at : at + WIDTH] for at in range(0, len(text), WIDTH)] or [""]


def bare(text: str) -> str:
    return text.rstrip()


@settings(max_examples=300, deadline=None)
@given(FRAMES, st.integers(0, HEIGHT + 3), st.booleans())
def test_the_terminal_shows_the_lines_and_keeps_what_was_said(
    frames: list[tuple[list[str], list[str]]], before: int, colours: bool
) -> None:
    terminal, painter = Emulator(WIDTH, HEIGHT), Painter(colours=colours)
    terminal.feed("\r\n".join(["before"] * before + [""]))
    said = ["before"] * before
    for shown, above in frames:
        terminal.feed(painter.frame([line(text) for text in shown], WIDTH, above))
        said += [row for text in above for row in wrapped(text)]
        everything = [bare(row) for row in (*terminal.scrolled, *terminal.rows)]
        wanted = [bare(text) for text in (*said, *shown)]
        assert everything[: len(wanted)] == wanted
        assert not any(everything[len(wanted) :])
        assert not terminal.has_cursor
    terminal.feed(painter.leave())
    everything = [bare(row) for row in (*terminal.scrolled, *terminal.rows)]
    assert everything[: len(said)] == [bare(text) for text in said]
    assert not any(everything[len(said) :]), "nothing of ours is left"
    assert terminal.has_cursor


def test_what_has_not_changed_is_not_sent_again() -> None:
    painter = Painter(colours=True)
    painter.frame([line("first"), line("second")], WIDTH)
    assert painter.frame([line("first"), line("second")], WIDTH) == ""
    sent = painter.frame([line("first"), line("other")], WIDTH)
    assert "other" in sent
    assert "first" not in sent


def test_a_frame_is_one_synchronised_update() -> None:
    sent = Painter(colours=False).frame([line("x")], WIDTH)
    assert sent.startswith("\x1b[?2026h")
    assert sent.endswith("\x1b[?2026l")


def test_without_colours_no_style_is_sent() -> None:
    assert "m" not in Painter(colours=False).frame([line("x")], WIDTH)
    assert "\x1b[32mx" in Painter(colours=True).frame([line("x")], WIDTH)


def test_a_narrower_terminal_has_wrapped_the_lines_that_are_erased() -> None:
    painter = Painter(colours=False)
    painter.frame([line("x" * 19), line("y" * 19)], 20)
    # Each took two rows of ten since; the cursor is where the second begins.
    assert "\x1b[2A\r\x1b[J" in painter.frame([line("x")], 10)
