"""Downloads, custom datasets, the demonstration, rendered scenes."""
