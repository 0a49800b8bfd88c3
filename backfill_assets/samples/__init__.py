"""Data to try things out: real flights and weather, generated orders, landed as sources land them.

Nothing of the pipelines imports this room.
"""
