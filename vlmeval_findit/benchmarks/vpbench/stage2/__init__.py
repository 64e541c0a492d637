"""VP-Bench stage 2: questions about one region, asked with a mark or in words."""
