"""Answers explained figure by figure, from the very objects that hold them."""
