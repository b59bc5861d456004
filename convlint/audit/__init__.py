"""The audit of any number of models: from paths and lists to rows of tables, and to what loses most GPU hours."""
