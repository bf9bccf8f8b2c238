"""Shell text understood as commands: what runs, with which words, where it reads and writes."""
