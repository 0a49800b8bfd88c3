"""How computed rows get together with those that are published: a module for each write mode.

Whatever the mode, what comes out is the whole contents of the partitions, audited and published by
one replaceWhere. A MERGE statement would rewrite files of other partitions, and publish before the
audit. A project adds a mode of its own by an entry point of `backfill_engine.write_modes`.
"""
