"""The journal of finished calls: append-only, and the single source of all results."""
