"""How scores change when an observer learns more, or an analyst chooses otherwise."""
