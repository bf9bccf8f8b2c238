"""`steelyard evalset cancel SET`: end a set that another process runs."""

from __future__ import annotations

import click

from steelyard.cli.options import output_options


@click.command("cancel")
@click.argument("set_", metavar="SET")
@click.option("--wait-seconds", type=click.FloatRange(min=0), default=60.0, show_default=True,
              metavar="SECONDS", help="How long to wait for its end; 0: not at all.")  # fmt: skip
@output_options
def cancel(set_: str, wait_seconds: float, as_json: bool, debug: bool) -> int:
    """End SET, which another process runs: environments are closed, what is done is kept.

    SET is a set's folder, its id, its name, or `latest`. `evalset resume` goes on with it.
    """
    from steelyard.cli.output import note, print_json, say
    from steelyard.cli.run_argument import results_dir
    from steelyard.evalset.cancelling import await_end, cancel_set
    from steelyard.evalset.find_set import find_set

    opened = find_set(set_, results_dir())
    cancel_set(opened)
    has_ended = await_end(opened, wait_seconds) if wait_seconds else False
    state = opened.state()
    if as_json:
        print_json(
            {"schema": "evalset-cancel/1", "set_id": opened.set_id, "has_ended": has_ended,
             "state": state.value}
        )  # fmt: skip
    elif has_ended:
        say(f"{opened.set_id}: {state}; `steelyard evalset resume {opened.set_id}` goes on")
    else:
        note(f"{opened.set_id} was told to end, and is cleaning up")
    return 0
