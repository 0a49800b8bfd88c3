"""How computed rows get together with those that are published: a module for each write mode.

Whatever the mode, what comes out is the whole contents of the partitions, audited and published by
one replaceWhere. A MERGE statement would rewrite files of other partitions, and publish before the
audit. A mode is its module and its line in `choosing`.
"""
