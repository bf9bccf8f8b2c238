"""Two settings of one model side by side, as tables and as figures with their uncertainty.

python examples/sdk/compare.py MODEL_URL
"""

import sys
from pathlib import Path

import steelyard as sy

PACK = Path(__file__).parents[1] / "packs" / "refund-triage"


def main(model_url: str) -> None:
    """Launch both and print what came of them."""
    result = sy.launch(
        sy.Orchestration(
            [
                sy.Request(
                    PACK,
                    "chat",
                    sy.Model("small", base_url=model_url, params={"temperature": temperature}),
                    name=name,
                    k=2,
                )
                for name, temperature in (("cold", 0), ("warm", 1))
            ]
        )
    )
    for run in result.require_completed():
        print(f"{run.name}: {run.score()}")
    calls = sum(run.usage.requests for run in result)
    print(f"{calls} model calls in {result.elapsed_s:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
