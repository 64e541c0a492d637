"""Finished calls: appended, never changed, and the single source of all results."""
