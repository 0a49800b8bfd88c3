"""What a run is told, who else is at work, and when it ends, pauses or goes on.

Here belongs what holds for a run whatever table it is about.
"""
