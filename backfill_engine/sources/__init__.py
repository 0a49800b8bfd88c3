"""What lands: where it lies, what of it is there, how it is read; a module for each format."""
