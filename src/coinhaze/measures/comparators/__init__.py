"""Other people's measures of the same coins, by what they are about."""
