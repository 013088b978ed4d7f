"""Pure analysis of bash commands."""
