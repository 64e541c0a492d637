"""What every benchmark shares: files, images, replies, identities of runs, statistics, plug-ins."""
