"""Task folders in the format of Harbor: from any folder, and the published sets."""

from steelyard.benchmarks.harbor.benchmark import Harbor as Harbor
