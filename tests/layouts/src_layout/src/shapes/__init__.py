"""Segmentation of shapes."""

from shapes.net import ShapeNet

__all__ = ["ShapeNet"]
