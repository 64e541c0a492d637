"""Providers that are asked with a key of one's own, in their own protocol."""
