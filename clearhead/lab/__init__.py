"""The lecture's claims, each a small measured experiment with a table, a plot and a verdict."""
