"""A finished translation, looked at once more: traces, and what draws them."""
