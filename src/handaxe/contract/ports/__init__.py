"""What a host may offer to tools and to the pipeline, described and not done.

Belongs here: one abstract class per kind of reach, with the values it trades in.
Does not: any implementation.
May import: the other words of `handaxe.contract`.
"""
