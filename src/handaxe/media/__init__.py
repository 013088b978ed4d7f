"""Pictures and PDFs on this machine.

Belongs here: the `Media` port, done with Pillow and PDFium; the only door to both libraries.
Does not: reading files (`handaxe.disk.local_files`), what the model is told (`handaxe.tools`).
May import: contract, text.
"""
