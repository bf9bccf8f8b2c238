"""Public aids for tests: conformance suites, fakes, fault plans."""
