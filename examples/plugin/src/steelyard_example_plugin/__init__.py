"""One Steelyard component of every kind, to copy from."""
