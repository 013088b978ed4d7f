"""What single programs do with their arguments beyond one command."""
