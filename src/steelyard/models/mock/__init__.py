"""The mock endpoint: all three protocols on loopback, deterministic by seed, faults to order."""
