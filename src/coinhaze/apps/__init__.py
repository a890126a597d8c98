"""What people ask: wallets, screening, robustness, churn; over the library's own nouns."""
