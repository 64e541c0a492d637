"""Custom datasets: annotations of common formats in, checked tables out."""
