"""Simulations: real torch objects recorded once and shown again, with controls that record anew."""

from __future__ import annotations

from simulations.batchnorm_internals import BatchNormInternals

__all__ = ["BatchNormInternals"]
