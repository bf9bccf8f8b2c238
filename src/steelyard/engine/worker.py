"""Run one execution in a process of its own: spec on standard input, result on standard output.

    python -m steelyard.engine.worker <spec.json >result.json

The process is handed no secret: what the spec refers to comes from its own environment. This is
the seam over which executions are distributed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Literal

from steelyard.components.clock import SystemClock
from steelyard.components.environment import Kept
from steelyard.components.issues import Issue, IssueCode, Outcome, Phase
from steelyard.components.steps import Step
from steelyard.config.errors import SteelyardError
from steelyard.config.secrets import SecretStore, SecretUnavailable
from steelyard.engine.executor import InProcessExecutor
from steelyard.engine.services import EndpointPool, Maker
from steelyard.engine.spec import ExecutionResult, ExecutionSpec
from steelyard.engine.spec_json import NotAMessage, result_to_bytes, spec_from_bytes


class _Unobserved:
    def phase(self, token: str, phase: Phase) -> None:
        pass

    def session(self, token: str, state: Literal["opened", "closed"], provider: str) -> None:
        pass

    def step(self, token: str, step: Step) -> None:
        pass  # it stands in the result

    def kept(self, token: str, provider: str, kept: Kept) -> None:
        pass  # whoever handed over the spec has no journal here

    def checkpoint(self, token: str, path: str) -> None:
        pass  # it stands in the result


async def run_one(spec: ExecutionSpec) -> ExecutionResult:
    """Run one execution with components made for it alone."""
    clock, secrets = SystemClock(), SecretStore()
    maker = Maker(secrets, clock, EndpointPool(secrets, clock), Path.cwd())
    executor = InProcessExecutor(maker)
    try:
        return await executor.execute(spec, _Unobserved())
    except SecretUnavailable as error:
        return _refused(IssueCode.SECRET_UNAVAILABLE, error, spec)
    except SteelyardError as error:
        return _refused(IssueCode.CONFIGURATION, error, spec)
    finally:
        await executor.close()


def _refused(code: IssueCode, error: SteelyardError, spec: ExecutionSpec) -> ExecutionResult:
    issue = Issue.of(code, Phase.SETUP, str(error))
    return ExecutionResult(outcome=Outcome.FAILED_FATAL, issues=(issue,), request_fault=str(error))


def main() -> int:
    """Read, run, write; exit status 2 where standard input holds no spec."""
    try:
        spec = spec_from_bytes(sys.stdin.buffer.read())
    except NotAMessage as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status
    sys.stdout.buffer.write(result_to_bytes(asyncio.run(run_one(spec))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
