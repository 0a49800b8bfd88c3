"""What is to be done: plans and their launch, the run requests of sensors, reports on partitions.

Here belongs what is said before anything runs.
"""
