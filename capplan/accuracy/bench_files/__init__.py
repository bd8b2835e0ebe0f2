"""Result files of benchmark tools, read into rows of the schema of measured runs."""
