"""Answers, as frozen dataclasses: tables, text, JSON and plots are renderings of one of these.

Base units, the unit in the name. These names are the keys of ``--json``; a renamed field or a
changed unit raises the schema version of its command. One module a command, so that a command
loads its own alone.
"""
