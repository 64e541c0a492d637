"""A package, so that ``python -m tests.…`` in a clone is ours, whatever others install as tests."""
