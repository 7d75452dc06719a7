"""Studies that can be run again: the shape features of handwritten digits.

Zhang & Malik (2005), "Selecting shape features using multi-class relevance vector machine": every digit is matched
to one anchor a class, and at each of the anchor's 100 contour points it gives two distances.
"""

from bayes_sparse.studies.features import ShapeFeatures, shape_features
from bayes_sparse.studies.settings import ShapeSettings

__all__ = ["ShapeFeatures", "ShapeSettings", "shape_features"]
