"""Who is told of what was withheld or failed, when, and in which words.

Here belongs what leaves the house; not the sensor that looks, `alerts.py` beside this room.
"""
