"""Scanners that people write as rules, without code: `scan-rules/1`."""
