"""What changed, that nothing else did, and whether that still holds: for sceptics. No Spark."""
