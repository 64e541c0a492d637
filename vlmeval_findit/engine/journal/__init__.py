"""Finished calls: appended, never changed, and the single source of all results.

A file of JSON lines (``lines``) and where each call's are (``index``): ``reading`` without a lock,
``lookup`` by key, ``tail`` for who follows it; ``writer`` for the run that has it.
"""
