"""Boxes of decision trees, for :class:`safespn.DensityTree`: what they hold, and how rows find them."""
