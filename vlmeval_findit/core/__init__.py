"""What every benchmark shares: files, images, replies, the identity of a run, statistics, plug-ins."""
