"""Real data for trying things out, written into the landing zone as a source system would."""
