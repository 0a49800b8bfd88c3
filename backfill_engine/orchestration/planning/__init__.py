"""What is to be done: plans and their launch, the sensors' work, the story of a partition.

Here belongs what is said before anything runs.
"""
