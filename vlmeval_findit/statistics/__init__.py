"""Influences, intervals and tests: arrays in, numbers out."""
