"""Models: protocol adapters, one client per endpoint, prices, and the mock endpoint."""
