"""Scored runs: the files that a score leaves, and reading them back."""
