"""The scanners that ship with Steelyard: they read what an agent did, command by command."""
