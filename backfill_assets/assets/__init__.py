"""The pipelines, one module each: which window an asset reads, and which transform it applies."""
