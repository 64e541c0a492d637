"""A plug-in of vlmeval_findit: rows that it adds, and a benchmark of number plates."""
