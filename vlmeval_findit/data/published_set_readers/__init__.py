"""Published sets in their authors' formats; a further set needs a function and a row."""
