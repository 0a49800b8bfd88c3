"""What is declared of the samples' tables."""
