"""Live nodes as sources of batches: one family a file, over JSON-RPC or REST."""
