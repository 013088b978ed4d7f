"""The analysis of one command as plain facts."""
