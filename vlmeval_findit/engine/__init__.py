"""One engine under format search and sweeps: it loses nothing, and pays for nothing twice.

====================  ===========================================================================
``cells``             from lists of axis values to variants of the grid
``config``            a sweep's YAML file, read with line numbers and refused with reasons
``calls``             one (image, prompt) call, and the key by which it is known
``lock``              one process at a time, on one machine or on several that share a disk
``lines``             a journal's lines: JSON with a checksum
``journal``           finished calls, one line a call, appended and never changed
``plan``              from cells to calls, so ordered that all variants of one image come together
``asking``            one piece of work and one model: the adapter to what models can do
``stopping``          Ctrl-C and SIGTERM, once and twice
``executors``         who answers: this process, threads; ``ray_executor``: a Ray cluster
``endpoints``         a small client of OpenAI-compatible servers
``keeping``           what becomes of answers: kept, and cells completed
``predictions``       from the journal to prediction files and scores
``run``               a whole sweep
====================  ===========================================================================

Only :mod:`..host.engine` knows VLMEvalKit; nothing here imports it, nor torch.
"""
