"""Adapters to other packages: one generic class per package, and one class per learner made from it."""
