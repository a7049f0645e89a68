"""Who comes in: API keys, tokens of an outside issuer, and the people behind them."""
