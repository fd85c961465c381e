"""One pass over rows that everything is built from: up for log values, down for flows and statistics."""
