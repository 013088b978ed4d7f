"""The version of handaxe."""

__version__ = "0.1.0"
