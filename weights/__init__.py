"""Weights of the small models of vlmeval_findit, a folder a model: files only."""
