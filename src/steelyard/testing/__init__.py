"""Public aids for tests: conformance suites, fakes, fault plans.

checks                 Check, run_suite: a suite as a table of named clauses
harness_suite          every clause of a contract, for a class of yours;
benchmark_suite          each module has a function of its name
environment_suite
analyzer_suite
scanner_suite
clock                  FakeClock
fake_model             ScriptedModel, ScriptedEndpoint
fake_environment       FakeEnvironment, FakeSession: in memory, scripted, every call on record
fake_harness_context   FakeHarnessContext
fake_run               FakeRun, FakeScannedAttempt, finished_run
fake_gate              FakeGate, ClosedGate
attempts               run_attempt: one attempt through the engine; FixedAnswer, EventLog
endpoint               MockEndpoint, mock_endpoint: a model over HTTP
faults                 KillAt, FailAt, SlowSync, All: what goes wrong with a run's writes
"""
