"""Providers that are asked in their protocols."""
