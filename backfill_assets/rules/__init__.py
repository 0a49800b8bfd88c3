"""What a partition must meet to be published, a module for each rule."""
