"""Raw blocks of Bitcoin and the chains that share its form."""
