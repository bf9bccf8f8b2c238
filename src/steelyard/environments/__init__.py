"""Built-in environments, one file (or folder) each."""
