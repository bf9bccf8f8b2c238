"""Fix: candidates measured against a frozen benchmark, reviewed, verified, delivered."""
