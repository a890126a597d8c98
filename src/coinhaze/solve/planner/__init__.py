"""Which method answers a question: every threshold, the costs behind them, and the choice."""
