"""Tries a running gateway with parts that nobody here wrote. `../run` is the way in."""
