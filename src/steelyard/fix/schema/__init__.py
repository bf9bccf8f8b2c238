"""What people write for a fix run: spec, profile, review, control; strict, every fault at once."""
