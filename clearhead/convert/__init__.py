"""Weights of ours in the formats of others, and the other way round."""
