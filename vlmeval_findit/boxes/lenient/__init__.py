"""Lenient reading: what a reply that does not adhere still says; never used for the score."""
