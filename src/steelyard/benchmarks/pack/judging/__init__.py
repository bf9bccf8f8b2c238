"""Judging by a model: what it is asked, what counts as a verdict, what several verdicts make."""
