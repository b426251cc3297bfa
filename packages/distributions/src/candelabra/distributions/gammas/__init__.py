"""Distributions that are drawn by means of gamma draws."""
