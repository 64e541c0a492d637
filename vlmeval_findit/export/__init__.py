"""Runs for the hub, trackers, FiftyOne and COCO.

What leaves a machine goes through :mod:`.private` first.
"""
