"""What the exit code says.

0: answered; 1: answered, and the answer is no; 2: could not answer; 130: interrupted.
"""

from __future__ import annotations

EXIT_FINE, EXIT_NO, EXIT_ERROR, EXIT_INTERRUPTED = 0, 1, 2, 130
