"""Open files, as Python's own are."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, Any, Optional

from . import _volary

if TYPE_CHECKING:
    from ._volume import Volume

#: How much is read or gathered at once unless it is said.
BUFFER = 128 << 10


class RawFile(io.RawIOBase):
    """A file of a volume, without a buffer: each call reads or writes at once."""

    def __init__(self, volume: "Volume", path: bytes, name: str, mode: str) -> None:
        super().__init__()
        self.name = name
        self.mode = mode
        self._reads = "r" in mode or "+" in mode
        self._writes = mode != "r"
        self._appends = "a" in mode
        self._at = 0
        # The volume stays as long as its files.
        self._volume = volume
        self._file = _opened(volume._native, path, mode)
        if self._appends:
            self._at = self._file.size()

    def readable(self) -> bool:
        return self._reads

    def writable(self) -> bool:
        return self._writes

    def seekable(self) -> bool:
        return True

    def _need(self, can: bool, what: str) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if not can:
            raise io.UnsupportedOperation(f"not {what}: {self.name}")

    def readinto(self, buffer: Any) -> int:
        self._need(self._reads, "readable")
        view = memoryview(buffer).cast("B")
        data = self._file.read_at(self._at, len(view))
        view[: len(data)] = data
        self._at += len(data)
        return len(data)

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return self.readall()
        self._need(self._reads, "readable")
        data = self._file.read_at(self._at, size)
        self._at += len(data)
        return data

    def readall(self) -> bytes:
        self._need(self._reads, "readable")
        data = self._file.read_at(self._at, 1 << 62)
        self._at += len(data)
        return data

    def write(self, data: Any) -> int:
        self._need(self._writes, "writable")
        data = data if isinstance(data, bytes) else bytes(memoryview(data))
        if self._appends:
            self._at = self._file.size()
        if data:
            self._file.write_at(self._at, data)
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._need(True, "seekable")
        if whence == io.SEEK_CUR:
            offset += self._at
        elif whence == io.SEEK_END:
            offset += self._file.size()
        elif whence != io.SEEK_SET:
            raise ValueError(f"invalid whence: {whence}")
        if offset < 0:
            raise ValueError(f"negative seek position {offset}")
        self._at = offset
        return offset

    def tell(self) -> int:
        self._need(True, "seekable")
        return self._at

    def truncate(self, size: Optional[int] = None) -> int:
        self._need(self._writes, "writable")
        size = self._at if size is None else size
        self._file.set_len(size)
        return size

    def sync(self) -> None:
        """Makes what was written durable. Flush buffers above it first."""
        self._need(True, "open")
        self._file.sync()

    def close(self) -> None:
        if not self.closed:
            try:
                super().close()
            finally:
                self._file.close()


def _opened(vol: _volary.Vol, path: bytes, mode: str) -> _volary.File:
    if mode == "w+":
        file = vol.open_file(path, "r+c")
        file.set_len(0)
        return file
    if mode == "x+":
        vol.open_file(path, "x").close()
        return vol.open_file(path, "r+")
    return vol.open_file(path, "r+c" if mode == "a+" else mode)


_MODES = ("r", "w", "x", "a", "r+", "w+", "x+", "a+")


def opened(
    volume: "Volume",
    path: bytes,
    name: str,
    mode: str,
    buffering: int,
    encoding: Optional[str],
    errors: Optional[str],
    newline: Optional[str],
) -> IO[Any]:
    """Opens a file as the built-in ``open`` does."""
    is_text = "b" not in mode
    plain = mode.replace("b", "").replace("t", "")
    plain = plain.replace("+", "") + "+" if "+" in plain else plain
    if plain not in _MODES or "b" in mode and "t" in mode:
        raise ValueError(f"invalid mode: {mode!r}")
    if not is_text and (encoding or errors or newline):
        raise ValueError("binary mode takes no encoding, errors or newline")
    if is_text and buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    raw = RawFile(volume, path, name, plain)
    if buffering == 0:
        return raw  # type: ignore[return-value]
    try:
        size = BUFFER if buffering < 2 else buffering
        buffered: Any
        if "+" in plain:
            buffered = io.BufferedRandom(raw, size)
        elif plain == "r":
            buffered = io.BufferedReader(raw, size)
        else:
            buffered = io.BufferedWriter(raw, size)
        if not is_text:
            return buffered  # type: ignore[no-any-return]
        return io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)
    except BaseException:
        raw.close()
        raise
