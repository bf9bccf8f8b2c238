"""What works on this machine, what does not, and the remedy: `steelyard doctor`."""
