"""Batch services, which answer within a day at half the price."""
