"""Images and PDF pages: the `Media` port on this machine.

Belongs here: decoding and scaling with Pillow and PDFium, in child processes where files are large.
Does not: reading files (`disk`), results for the model (`tools.files.read`).
May import: `shell/sandbox` and the layers below it; Pillow and PDFium, only here.
"""
