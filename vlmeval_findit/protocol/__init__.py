"""What a benchmark is: variants, queries, messages, metrics, how replies are read."""
