"""Questions that a density with exact marginals can answer: why, what to measure, what to label, did it help."""
