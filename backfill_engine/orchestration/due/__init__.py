"""Which partitions may go, must go again, and what moves with them, by rows and by mappings.

Here belongs what follows from inputs, published versions and code; not what runs do about it.
"""
