"""Batches of services: calls at half the price, within a day."""
