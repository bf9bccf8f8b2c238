"""What holds for every test: in CI a skipped test is a failure (`--no-skips`)."""

from __future__ import annotations

import pytest

pytest_plugins = ("tests.containers.fixtures",)


class NoSkips:
    """Collect what was skipped, and fail the run for it."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped:
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            self.skipped.append(f"{report.nodeid}: {why}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.skipped:
            terminalreporter.write_line(f"SKIPPED, a failure under --no-skips: {line}", red=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="fail the run where a test is skipped")


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if config.getoption("--no-skips") and not is_worker:
        config.pluginmanager.register(NoSkips(), "no-skips")
