"""Matrix products, factorizations and solvers."""
