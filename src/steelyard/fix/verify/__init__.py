"""What measurements of candidates say, and how surely. Pure: no file, clock or ledger."""
