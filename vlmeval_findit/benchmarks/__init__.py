"""One folder a benchmark."""
