"""How scores change when an observer learns more, or an analyst makes other choices."""
