"""Which tools an agent called: what a call must look like, and in which order calls stand."""
