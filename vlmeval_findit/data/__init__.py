"""Data in and out: downloads, datasets of one's own, the demonstration, rendered scenes."""
