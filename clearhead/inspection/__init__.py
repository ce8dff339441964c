"""A second look at a finished translation: what every head read, and how it is shown."""
