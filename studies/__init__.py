"""Studies that can be run again, ``python -m studies NAME`` in a clone: papers' tables, and what fits are worth.

Digits: Zhang & Malik (2005), "Selecting shape features using multi-class relevance vector machine": every digit is
matched to one anchor a class, and at each of the anchor's 100 contour points it gives two distances.
"""
