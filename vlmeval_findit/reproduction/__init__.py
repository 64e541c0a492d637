"""Whether a setup gives the published number, and if not, why."""
