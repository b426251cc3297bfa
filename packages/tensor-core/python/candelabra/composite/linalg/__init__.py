"""Products, factorizations and solvers."""
