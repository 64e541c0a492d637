"""One engine under runs, format search and sweeps: it loses nothing, and pays for nothing twice.

====================  ===========================================================================
``config``            what a sweep or a search is; ``config_file``: its YAML, refused with reasons
``calls``             one (image, prompt) call, and the key by which it is known
``journal``           finished calls, appended and never changed; a room of its own
``plan``              from cells to calls, so ordered that all variants of one image come together
``backend``           who answers: a model in this process; ``executors``: threads
``scheduler``         which call goes to which server; ``server``, ``backlog``, ``overflow``,
                      ``outcome`` are parts of it
``ray_backend``       replicas on a Ray cluster; ``ray_replica``: what runs there
``servers``           OpenAI-compatible servers as the host of a sweep
``dry_run``           what a run would do, counted; ``counting``: by cell and image, not by call
``outputs``           where results go, what run they are of, what lies there already
``cell_files``        from the journal to prediction files and scores
``sink``              what becomes of answers: kept, and cells written when they are complete
``cancel``            Ctrl-C once, and twice
``run``               a whole sweep; ``racing``: formats race each other
====================  ===========================================================================

Only :mod:`..host.sweep_host` knows VLMEvalKit; nothing here imports it, nor torch.
"""
