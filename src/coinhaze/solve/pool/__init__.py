"""What a solve may use: threads, memory, time."""
