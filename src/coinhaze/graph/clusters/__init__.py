"""Who belongs together: addresses merged into entities, change, CoinJoins, services, pools."""
