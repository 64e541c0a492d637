"""FindIt-Nano-SigLIP: a dual encoder of the SigLIP architecture that ships with the package.

``recipe``, ``architecture`` and ``lessons`` → ``batches`` → ``losses`` → ``train`` → ``evaluate``
→ ``card``; the checkpoint in ``vlmeval_findit/models/findit_nano_siglip`` is loaded by the same
code as any other dual encoder.
"""
