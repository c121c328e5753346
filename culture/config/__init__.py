"""What the YAML says: frozen, validated models and where the files live."""
