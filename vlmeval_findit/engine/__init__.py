"""One engine under runs, format search and sweeps: it loses nothing, and pays for nothing twice.

====================  ===========================================================================
``config``            what a sweep or a search is; ``config_file``: its YAML, refused with reasons
``calls``             one (image, prompt) call, and the key by which it is known
``journal``           finished calls, appended and never changed; a room of its own
``plan``              from cells to calls, so ordered that all variants of one image come together
``answering``         the one function that makes calls: of sweeps, races and VLMEvalKit's runner
``backend``           who answers: a model in this process (``model_asker``: what it can do);
                      ``http_backend``: servers; ``batch_backend``: a provider's batches;
                      ``ray_backend``, ``ray_replica``: replicas on a Ray cluster
``scheduler``         which call goes to which server; ``server``, ``backlog``, ``overflow``,
                      ``outcome`` are parts of it
``sink``              what becomes of answers: kept, and cells finished when they are complete
``cancel``            Ctrl-C once, and twice
``servers``           OpenAI-compatible servers as the host of a sweep; ``serving``, ``served``:
                      those that are started on this machine
``dry_run``           what a run would do, counted; ``counting``: by cell and image, not by call
``outputs``           where results go, what run they are of, what lies there already
``cell_files``        from the journal to prediction files and scores
``run``               a whole sweep; ``racing``: formats race each other
====================  ===========================================================================

Only :mod:`..host.sweep_host` knows VLMEvalKit; nothing here imports it, nor torch.
"""
