"""Show a launch while it runs: what it says, how far it is, and the keys that steer it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from steelyard.cli.json_log import JsonNews
from steelyard.cli.news import News
from steelyard.cli.preparing import said_when_slow
from steelyard.cli.progress import is_live, make_renderer
from steelyard.config.schema.orchestration import SharedRuntime
from steelyard.engine.control import Controls
from steelyard.engine.launch import Prepared
from steelyard.engine.run_log import listening


@dataclass(frozen=True, slots=True)
class Followed:
    """A launch that is shown."""

    news: News | JsonNews
    """The launch's observer."""
    controls: Controls
    """The launch's handle."""


@contextmanager
def prepared_aloud(runtime: SharedRuntime) -> Iterator[None]:
    """Say what takes long before anything runs."""
    mode = runtime.progress
    is_silent = mode == "none" or runtime.log_format == "json"
    with said_when_slow(sys.stderr, is_live=is_live(mode, sys.stderr), is_silent=is_silent):
        yield


@contextmanager
def followed(prepared: Prepared, runtime: SharedRuntime) -> Iterator[Followed]:
    """Show what is launched within, as the settings want it; leave the terminal as it was."""
    mode = runtime.progress
    controls = Controls()
    news: News | JsonNews
    if runtime.log_format == "json":
        news = JsonNews(mode, prepared.redactor, runtime.log_level)
    else:
        renderer = make_renderer(mode, controls=controls)
        news = News(renderer, prepared.redactor, runtime.log_level)
    for extra in prepared.installed:
        news.notice(None, f"installed the extra {extra}")
    for warning in prepared.plan.warnings:
        news.notice(None, f"warning: {prepared.redactor.text(str(warning))}")
    try:
        with _own_loggers(), listening(news.handler):
            yield Followed(news, controls)
    finally:
        news.close()


@contextmanager
def _own_loggers() -> Iterator[None]:
    """Let our handlers alone say what we log; a caller in whose process we run gets theirs back."""
    logger = logging.getLogger("steelyard")
    before = (logger.level, logger.propagate)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.propagate = before[1]
