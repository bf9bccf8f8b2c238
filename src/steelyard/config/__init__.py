"""Files to settings: documents with positions, layers, references, redaction, schemas."""
