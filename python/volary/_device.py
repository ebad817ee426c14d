"""File objects that hold a volume."""

from __future__ import annotations

import io
import threading
from typing import Any


class Reader:
    """Reads a binary file object at offsets, from any thread."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._lock = threading.Lock()
        self.name = str(getattr(file, "name", None) or getattr(file, "path", None) or type(file).__name__)
        self.size: int = file.seek(0, io.SEEK_END)

    def read_at(self, offset: int, length: int) -> bytes:
        """Returns ``length`` bytes from ``offset`` on, fewer only at the end."""
        parts = []
        with self._lock:
            self._file.seek(offset)
            while length > 0:
                part = self._file.read(length)
                if not part:
                    break
                parts.append(bytes(part))
                length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
