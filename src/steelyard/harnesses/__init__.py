"""Built-in harnesses, one file each."""
