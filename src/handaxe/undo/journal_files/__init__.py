"""journal_files."""
