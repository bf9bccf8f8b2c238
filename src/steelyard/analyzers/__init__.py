"""The analyzers that ship with Steelyard."""
