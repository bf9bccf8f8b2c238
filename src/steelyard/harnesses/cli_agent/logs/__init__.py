"""One module an agent: from its own log to steps. Pure; none of them raises."""
