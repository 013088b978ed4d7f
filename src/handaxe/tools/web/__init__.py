"""Tools for the web: fetch a page, search.

Belongs here: the two tools and their texts for the model.
Does not: addresses, connections and back ends (`web`).
May import: what `tools` may import.
"""
