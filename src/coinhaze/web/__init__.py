"""The page and its API: a local web server over the library."""
