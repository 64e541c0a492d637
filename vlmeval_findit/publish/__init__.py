"""Where results go: a dataset for the Hugging Face hub, a tracking server, FiftyOne.

What leaves a machine goes through :mod:`.private` first; what is written is the same bytes for the
same runs.
"""
