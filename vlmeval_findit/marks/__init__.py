"""Visual marks drawn on images."""
