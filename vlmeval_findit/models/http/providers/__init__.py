"""Providers that are asked in their own protocol."""
