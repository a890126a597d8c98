"""Other people's measures of the same coins, one file each."""
