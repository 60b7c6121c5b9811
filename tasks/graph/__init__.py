"""Message passing. DGL is imported only in `tasks.graph.ops`."""
