"""Averages of parameters, for training in which ranks take steps of their own."""
