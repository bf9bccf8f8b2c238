"""Model endpoints: protocol adapters, clients, prices and the mock endpoint."""
