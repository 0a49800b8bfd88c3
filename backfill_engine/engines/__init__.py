"""What differs between the engines that run a session: Spark, and Sail, which needs no Java.

Here belong reading landed files with their names, keeping rows while they are audited, and
statements on tables by path. Nothing else asks which engine a session has. Nothing here knows what
the files hold, what the rows mean, or how a session starts (`spark`).
"""
