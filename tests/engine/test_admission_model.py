"""Admission against its reference model, on random workloads."""

from __future__ import annotations

from hypothesis import given, settings

from tests.engine.admission_replay import Replay, Workload, workloads


@settings(max_examples=400, deadline=None)
@given(workloads())
def test_admission_decides_as_its_model_on_any_workload(workload: Workload) -> None:
    Replay(workload).run()
