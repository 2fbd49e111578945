"""Baselines: a suite of incidents run through the service's own path, and what came of it kept in a file."""
