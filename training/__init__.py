"""FindIt-Nano: a vision-language model of the Qwen3-VL architecture that ships with the package.

``architecture`` and ``lessons`` → ``batches`` → ``losses`` → ``train`` → ``evaluate``; the
checkpoint in ``checkpoint/`` is loaded by the same code as any other of its family.
"""
