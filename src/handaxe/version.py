"""The version of handaxe, for everybody who names it."""

__version__ = "0.1.0"
