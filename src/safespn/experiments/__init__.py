"""The paper's experiments and the wide comparison: protocols, methods, scores, tables and figures."""
