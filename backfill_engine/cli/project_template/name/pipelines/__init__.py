"""The pipelines, a module each; `build_defs` finds the tables of all of them."""
