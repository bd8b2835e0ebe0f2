"""The document of `capplan report`: its content, and its two forms, HTML and markdown."""
