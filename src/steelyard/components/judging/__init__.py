"""Asking a model to judge: what fences the judged text, what counts as a reply, how many agree.

Shared by the packs' `judge` and by scanners that ask a model; neither knows the other.
"""
