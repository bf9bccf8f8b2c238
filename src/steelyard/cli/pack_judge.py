"""`pack check --judge`: the model that judges, with keys from the environment."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from steelyard.benchmarks.pack.benchmark import JudgeParams
from steelyard.config.envrefs import expand
from steelyard.config.errors import BadInput, Problem
from steelyard.config.json_source import read_json
from steelyard.config.sealing import seal
from steelyard.config.secrets import SecretStore
from steelyard.config.source import Node, plain
from steelyard.config.validation import problems_of

OPTION = "--judge"


def read_judge(text: str, store: SecretStore, environ: Mapping[str, str]) -> JudgeParams:
    """Read what a request would say as `benchmark.judge`, `${NAME}` looked up.

    Args:
        text: a JSON object.
        store: learns the secrets in it, so that what is printed can be redacted.
        environ: where variables are looked up.

    Raises:
        BadInput: it is not an object, a field is wrong, or a variable is not set.
    """
    problems: list[Problem] = []
    node = expand(read_json(text, OPTION), environ, problems, [])
    if not isinstance(node.value, dict):
        raise BadInput(f"{OPTION} is a JSON object", remedy='{"model": {"id": …, "base_url": …}}')
    if problems:
        raise BadInput.of(problems)
    benchmark = Node({"judge": node}, node.origin)
    sealed = plain(seal(Node({"benchmark": benchmark}, node.origin), store, []))
    try:
        return JudgeParams.model_validate(store.reveal_tree(sealed["benchmark"]["judge"]))
    except ValidationError as error:
        raise BadInput.of(problems_of(error.errors(), node, JudgeParams)) from error
