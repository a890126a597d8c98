"""Which addresses belong together: entities, change, CoinJoins, services, pools."""
