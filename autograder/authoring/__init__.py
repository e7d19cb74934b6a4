"""What authors use: building notebooks from the one source, and the ledger of what is taught."""
