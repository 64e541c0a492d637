"""Batch interfaces, which answer within a day at half the price, and files of such requests."""
