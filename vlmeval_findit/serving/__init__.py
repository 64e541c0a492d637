"""Starts OpenAI-compatible servers of models on this machine, and follows address files.

``programs``: what can be started; ``processes``: start and stop, each server below a ``guard``;
``addresses``: servers elsewhere.
"""
