"""Spark and Sail beside each other."""
