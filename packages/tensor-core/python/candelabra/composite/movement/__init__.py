"""Movement of elements: views, joining, indexing and sorting."""
