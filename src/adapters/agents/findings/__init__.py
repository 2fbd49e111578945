"""From what was seen to what can be said of it: pure functions, without any model."""
