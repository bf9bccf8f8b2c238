"""Follow a run attempt by attempt, and stop it at the third failure.

python examples/sdk/follow.py MODEL_URL
"""

import sys
from pathlib import Path

import steelyard as sy

PACK = Path(__file__).parents[1] / "packs" / "refund-triage"


class TooManyFailures(Exception):
    """Enough is known."""


class Watch:
    """A handler of events that counts what went wrong."""

    def __init__(self, most: int) -> None:
        self.left = most

    def __call__(self, event: sy.Event) -> None:
        """Print how attempts end; raise at the last failure that is borne."""
        if not isinstance(event, sy.AttemptFinished):
            return
        passed = bool(event.metrics.get("correct"))
        print(f"{event.task_id}: {'passed' if passed else event.outcome.value}")
        self.left -= not passed
        if not self.left:
            raise TooManyFailures


def main(model_url: str) -> None:
    """Run until the third failure, or to the end."""
    model = sy.Model("small", base_url=model_url)
    try:
        run = sy.run(
            PACK,
            "chat",
            model,
            task_concurrency=1,
            run_name="followed",
            on_event=Watch(3),
            on_event_error="raise",
        )
    except TooManyFailures:
        run = sy.load_run(f"results/followed/small_{PACK.name}_chat")
        print(f"stopped: {run.outcome}, {run.counts[sy.Outcome.SCORED]} of {run.planned} scored")
    else:
        print(run.score())


if __name__ == "__main__":
    main(*sys.argv[1:])
