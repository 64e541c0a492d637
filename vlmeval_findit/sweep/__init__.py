"""One engine under runs, format search and sweeps: it loses nothing, and pays for nothing twice.

====================  ===========================================================================
``cells``             from lists of axis values to variants of the grid
``config``            a sweep's YAML file, read with line numbers and refused with reasons
``calls``             one (image, prompt) call, and the key by which it is known
``journal``           finished calls, appended and never changed; ``lines``, ``lock``: of its file
``plan``              from cells to calls, so ordered that all variants of one image come together
``asking``            one piece of work and one model object: the adapter to what it can do
``executors``         who answers: this process, threads; ``ray_executor``: a Ray cluster
``servers``           OpenAI-compatible servers as the host of a sweep
``dry``               what a run would do, counted
``outputs``           where results go, what run they are of, what lies there already
``predictions``       from the journal to prediction files and scores
``keeping``           what becomes of answers: kept, and cells written when they are complete
``stopping``          Ctrl-C once, and twice
``run``               a whole sweep
====================  ===========================================================================

Only :mod:`..host.sweep_host` knows VLMEvalKit; nothing here imports it, nor torch.
"""
