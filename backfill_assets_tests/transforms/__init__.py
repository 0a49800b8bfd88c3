"""Each transform of the samples."""
