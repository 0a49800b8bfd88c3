"""What a crash left: commits without their events, claims of the dead.

Here belongs what makes the instance say again what the tables say.
"""
