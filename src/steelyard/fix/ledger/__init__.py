"""ledger.db: runs, candidates, trials, decisions, controls, reviews and budget of a checkout."""
