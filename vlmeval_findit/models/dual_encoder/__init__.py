"""Dual encoders: an image and a caption as two vectors whose angle says how well they match."""
