"""The collectives, by kind."""
