"""Hugging Face `config.json` read directly: one module a family, `architectures.py` lists them."""
