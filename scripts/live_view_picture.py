"""Take the picture of the live view: docs/assets/live-view.svg, from a real launch in tmux.

Needs tmux, bubblewrap and `scripts/setup.sh`; no network. Two stand-in models answer HumanEval,
slowly, one of them not always; what stands on the terminal after some seconds is the picture.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT  # public only as what export_svg begins with
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "assets" / "live-view.svg"
WIDTH, HEIGHT = 88, 18
SETTLED_AFTER_S = 25.0
STEELYARD = str(Path(sys.executable).with_name("steelyard"))

ORCHESTRATION = """\
name: nightly
task_concurrency: 16
budget: {usd: 2.00}
prices:
  steady: {input_per_mtok: 15, output_per_mtok: 75}
  flaky: {input_per_mtok: 3, output_per_mtok: 15}
defaults:
  benchmark: {id: humaneval}
  harness: {id: chat}
  environment: {id: sandbox}
runtime:
  provider_limits: {sandbox: 12}
  log_level: ERROR
requests:
  - name: steady
    model: {id: steady, base_url: "${STEADY_URL}"}
    execution: {attempts: {k: 3}}
  - name: flaky
    model: {id: flaky, base_url: "${FLAKY_URL}", max_request_retries: 0}
    execution: {attempts: {k: 5, strategy: pass}}
"""


@contextmanager
def model(folder: Path, name: str, *options: str) -> Iterator[str]:
    """Serve a stand-in model meanwhile; give its address."""
    port_file = folder / f"{name}.port"
    command = [STEELYARD, "mock-model", "--benchmark", "humaneval", "--port-file", str(port_file)]
    served = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
    try:
        while not (port_file.exists() and port_file.read_text().strip()):
            if served.poll() is not None:
                raise SystemExit(f"the mock model {name} did not start")
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port_file.read_text().strip()}/v1"
    finally:
        served.terminate()
        served.wait()


def captured(folder: Path, variables: dict[str, str]) -> str:
    """Launch in a terminal of its own; give what stands there, with its colours."""

    def tmux(*words: str) -> str:
        command = ["tmux", "-S", str(folder / "tmux"), "-u", "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    environment = [f"{name}={value}" for name, value in variables.items()]
    tmux(
        "new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(folder),
        "env", "PS1=$ ", "LC_ALL=C.UTF-8", f"PATH={Path(STEELYARD).parent}:{os.environ['PATH']}",
        *environment, "bash", "--norc", "--noprofile",
    )  # fmt: skip
    try:
        time.sleep(0.5)
        tmux("send-keys", "-l", "clear; steelyard launch nightly.yaml")
        tmux("send-keys", "Enter")
        time.sleep(SETTLED_AFTER_S)
        return tmux("capture-pane", "-pe")
    finally:
        tmux("send-keys", "C-c")
        time.sleep(2)
        tmux("kill-server")


def picture(screen: str) -> str:
    """Draw a terminal's text as SVG that fetches nothing."""
    console = Console(record=True, width=WIDTH, height=HEIGHT, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123 — nothing is written
    console.print(Text.from_ansi(screen.rstrip("\n")), soft_wrap=True)
    before, _, rest = CONSOLE_SVG_FORMAT.partition("@font-face")
    # rich names a host to fetch its font from; the reader's own will do.
    styles = rest[rest.index(".{unique_id}-matrix") :]
    return console.export_svg(
        title="steelyard launch nightly.yaml",
        theme=DIMMED_MONOKAI,
        code_format=f"{before}{styles}".replace(
            "Fira Code", "ui-monospace, Menlo, Consolas"
        ).replace("<svg ", '<svg xml:space="preserve" ', 1),  # else some drop leading spaces
        unique_id="live-view",
    )


def main() -> None:
    """Launch, look, draw."""
    with (
        tempfile.TemporaryDirectory(prefix="sy-") as name,
        model(
            Path(name), "steady", "--accuracy", "0.8", "--latency", "lognormal:1.2,0.9"
        ) as steady,
        model(
            Path(name), "flaky", "--accuracy", "0.4", "--latency", "0.6", "--fault", "500:rate=0.05"
        ) as flaky,
    ):
        (Path(name) / "nightly.yaml").write_text(ORCHESTRATION)
        screen = captured(Path(name), {"STEADY_URL": steady, "FLAKY_URL": flaky})
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(screen))
    sys.stdout.write(screen)


if __name__ == "__main__":
    main()
