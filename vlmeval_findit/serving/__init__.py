"""Starts model servers on this machine.

``programs``: what can be started; ``processes``: start and stop, each server below a ``guard``.
"""
