"""Task folders in the format of Harbor: from any folder, and the published sets."""

from steelyard.benchmarks.harbor.benchmark import Harbor as Harbor
from steelyard.benchmarks.harbor.published import TerminalBench2 as TerminalBench2
from steelyard.benchmarks.harbor.published import TerminalBench2Verified as TerminalBench2Verified
from steelyard.benchmarks.harbor.published import TerminalBench21 as TerminalBench21
