"""Benchmarks, one folder each: what their scores must mean."""
