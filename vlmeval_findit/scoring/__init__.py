"""The way from a prediction file to its score."""
