"""`steelyard mock-model`: a model endpoint on loopback, for demos and tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

EPILOG = """\b
Faults are written KIND:option=value,... and may be given several times:
  429:rate=0.1,retry_after=1    500:first=3            401
  400:code=context_length_exceeded                     reset[:at=body]
  hang[:at=body]                slow_body:seconds=3    malformed_json
  wrong_shape   empty_body      huge_body:mb=50
  wrong_usage:how=missing|negative|text|huge|list
Which calls: rate=CHANCE, first=N, after=N, every=N, per=prompt, model=ID.
"""


@click.command("mock-model", epilog=EPILOG)
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address.")
@click.option("--port", default=0, show_default="any free one", type=click.IntRange(0, 65535))
@click.option("--port-file", type=click.Path(path_type=Path), help="Write the port there.")
@click.option("--answers", type=click.Path(path_type=Path), help="JSON lines of answers.")
@click.option("--benchmark", help="Answer with this benchmark's references.")
@click.option("--benchmark-params", default="{}", help="Its parameters, a JSON object.")
@click.option(
    "--accuracy",
    multiple=True,
    metavar="[MODEL=]CHANCE",
    help="Chance of a right answer, 1 by default; with MODEL= for that model alone.",
)
@click.option("--text", help="Answer with this text where nothing else fits.")
@click.option("--echo", is_flag=True, help="Answer with the prompt where nothing else fits.")
@click.option("--function", help="module:function or ./file.py:function that answers.")
@click.option("--latency", default="0", show_default=True, help="Seconds, or a distribution.")
@click.option("--chunk-delay", default=0.0, help="Seconds between the events of a stream.")
@click.option("--fault", "faults", multiple=True, metavar="FAULT", help="A fault to order.")
@click.option("--seed", default=0, show_default=True, type=int)
@click.option("--model", "models", multiple=True, help="An id that /v1/models lists.")
@click.option("--require-key", help="Refuse calls without this key (401).")
@click.option("--keep-bodies", default=0, type=click.IntRange(0), help="/stats shows the last N.")
@click.option("--json", "as_json", is_flag=True, help="Say where it listens as JSON.")
@click.argument("command", metavar="[-- COMMAND ...]", nargs=-1, type=click.UNPROCESSED)
def mock_model(
    host: str,
    port: int,
    port_file: Path | None,
    answers: Path | None,
    benchmark: str | None,
    benchmark_params: str,
    accuracy: tuple[str, ...],
    text: str | None,
    echo: bool,
    function: str | None,
    latency: str,
    chunk_delay: float,
    faults: tuple[str, ...],
    seed: int,
    models: tuple[str, ...],
    require_key: str | None,
    keep_bodies: int,
    as_json: bool,
    command: tuple[str, ...],
) -> int:
    """Serve a model endpoint on loopback: three protocols, streaming and not.

    Prints `listening on http://127.0.0.1:PORT/v1` and serves until it is ended. `GET /stats`
    shows what it has seen, `POST /reset` forgets it.

    With a COMMAND it serves for as long as that runs, with MODEL_URL set to the endpoint, and ends
    with its exit status.
    """
    from steelyard.models.mock.chance import parse_latency
    from steelyard.models.mock.faults import parse_fault
    from steelyard.models.mock.main import Announcement, serve, source_list
    from steelyard.models.mock.server import MockSettings

    settings = MockSettings(
        sources=source_list(
            function=function,
            answers=answers,
            benchmark=benchmark,
            benchmark_params=benchmark_params,
            accuracy=accuracy,
            echo_prompt=echo,
            text=text,
            seed=seed,
        ),
        faults=tuple(parse_fault(fault) for fault in faults),
        latency=parse_latency(latency),
        chunk_delay_s=chunk_delay,
        seed=seed,
        models=models or ("mock",),
        required_key=require_key,
        keep_bodies=keep_bodies,
        host=host,
        port=port,
    )

    def announce(found: Announcement) -> None:
        if port_file is not None:
            # Whole or not at all: whoever waits for the file may read it at once.
            partial = port_file.with_name(port_file.name + ".part")
            partial.write_text(f"{found.port}\n", encoding="ascii")
            partial.replace(port_file)
        said = {"url": found.url, "port": found.port, "pid": found.pid}
        # Beside a command, standard output is the command's.
        print(
            json.dumps(said) if as_json else f"listening on {found.url}",
            file=sys.stderr if command else sys.stdout,
            flush=True,
        )

    if command:
        from steelyard.models.mock.companion import serve_command

        return serve_command(settings, announce, command)
    serve(settings, announce)
    return 0


def _main() -> None:
    from steelyard.config.errors import SteelyardError

    try:
        mock_model(standalone_mode=True)
    except SteelyardError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_status)


if __name__ == "__main__":
    _main()
