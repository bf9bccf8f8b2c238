"""Eval sets: a manifest of packs, agents, models and repeats becomes one orchestration."""
