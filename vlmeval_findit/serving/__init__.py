"""Starts OpenAI-compatible servers of models on this machine, and follows files of addresses.

``programs`` can be started and how; ``processes`` starts and ends them, each below ``guard``;
``addresses`` follows servers elsewhere.
"""
