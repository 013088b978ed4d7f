"""agent_setup."""
