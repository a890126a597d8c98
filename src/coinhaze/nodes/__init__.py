"""Live nodes as sources of batches over JSON-RPC or REST, one node family per module."""
