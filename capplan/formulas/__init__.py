"""Pure arithmetic: numbers in, number out, one equation a function, its source beside it."""
