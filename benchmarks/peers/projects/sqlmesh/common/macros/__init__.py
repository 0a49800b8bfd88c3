"""What the models share."""
