"""Plates: what does the number plate say?  A benchmark is a package with a prefix."""

PREFIX = "Plates_"
