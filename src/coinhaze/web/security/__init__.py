"""Who may ask, and how much: token and codes, hosts, headers, limits."""
