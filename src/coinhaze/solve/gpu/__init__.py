"""One GPU: tiles of columns and of draws by a schedule that is plain data."""
