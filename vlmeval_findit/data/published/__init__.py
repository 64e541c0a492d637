"""Published sets in their authors' formats; one more is a function and a row in ``sources``."""
