"""Data in and out: downloads, custom datasets, the demonstration, rendered scenes."""
