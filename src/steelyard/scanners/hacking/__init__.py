"""The rules of `reward-hacking`."""
