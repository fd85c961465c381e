"""The paper's experiments: protocol, methods, scores, tables and figures."""
