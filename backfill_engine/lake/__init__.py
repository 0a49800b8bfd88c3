"""Tables on the lake and files in the landing zone: where they are, what they hold, who may write.

Here belong the Delta log, the only code that writes tables, locks, watermarks, landed files, and
what a step may read of all that. Nothing here knows what rows mean or whether they are good
(`rules`, `quality`), in which order a run does things (`publishing`), or that there is Dagster.
"""
