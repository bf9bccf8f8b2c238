"""Terminus 2 of the `harbor` package over any session, with our model client."""

from steelyard.harnesses.terminus2.harness import Terminus2 as Terminus2
