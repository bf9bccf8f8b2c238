"""`docker`: one container a session, by the Docker API of any engine that speaks it."""
