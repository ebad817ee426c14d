"""Drivers in Python."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _volary
from ._types import Size, decoded, encoded
from ._volume import Volume, _how


class _Node:
    kind = ""

    def __init__(
        self,
        *,
        mtime: float = 0,
        mode: Optional[int] = None,
        owner: Optional[Tuple[int, int]] = None,
    ) -> None:
        self.size = 0
        self.key: Any = None
        self.target = b""
        self.mtime = mtime
        self.mode = mode
        self.owner = owner

    def __repr__(self) -> str:
        return f"volary.{type(self).__name__}({self.size})"


class File(_Node):
    """A file of ``size`` bytes. ``key`` is what :meth:`ReadOnly.read` is given; its path unless it is said."""

    kind = "file"

    def __init__(
        self,
        size: int,
        key: Any = None,
        *,
        mtime: float = 0,
        mode: Optional[int] = None,
        owner: Optional[Tuple[int, int]] = None,
    ) -> None:
        super().__init__(mtime=mtime, mode=mode, owner=owner)
        self.size = size
        self.key = key


class Dir(_Node):
    """A directory."""

    kind = "directory"


class Symlink(_Node):
    """A symlink that holds ``target``."""

    kind = "symlink"

    def __init__(
        self,
        target: Union[str, bytes],
        *,
        mtime: float = 0,
        mode: Optional[int] = None,
        owner: Optional[Tuple[int, int]] = None,
    ) -> None:
        super().__init__(mtime=mtime, mode=mode, owner=owner)
        self.target = encoded(target)


#: What a driver tells of a name.
Node = Union[File, Dir, Symlink]

#: What :meth:`ReadOnly.list` returns.
Listing = Union[Mapping[str, Node], Iterable[Tuple[str, Node]]]


class ReadOnly:
    """A driver for reading: say what is in each directory, and what is in each file::

        class Words(volary.ReadOnly):
            words = {"one.txt": b"1", "two.txt": b"22"}

            def list(self, dir):
                return {name: volary.File(len(text)) for name, text in self.words.items()}

            def read(self, file, offset, length):
                return self.words[file][offset : offset + length]

        with volary.volume(Words()) as vol:
            print(vol.read("/one.txt"))

    Then everything works on it that works on a volume: fsspec, layers, servers, mounts. Methods are called from any thread.
    What they raise is an ``EIO`` for whoever asked, with its words; ``FileNotFoundError`` says that something is gone.
    """

    def list(self, dir: str) -> Listing:
        """Returns the entries of a directory. The root is ``""``, others are ``"a"``, ``"a/b"``."""
        raise NotImplementedError

    def read(self, file: Any, offset: int, length: int) -> Union[bytes, bytearray, memoryview]:
        """Returns exactly ``length`` bytes from ``offset`` on, which lie before the size that the entry told."""
        raise NotImplementedError

    def find(self, dir: str, name: str) -> Optional[Node]:
        """Returns one entry, or None. Asked for each step of a path: override it where a directory is long to list."""
        return _mapping(self.list(dir)).get(name)


def _mapping(listing: Listing) -> Mapping[str, Node]:
    return listing if isinstance(listing, Mapping) else dict(listing)


_Told = Tuple[bytes, str, int, Any, bytes, Optional[int], Optional[Tuple[int, int]], int]


class _Tree:
    """A driver as the native part asks it: in bytes and tuples."""

    def __init__(self, driver: ReadOnly) -> None:
        self._driver = driver

    def list(self, dir: bytes) -> List[_Told]:
        where = decoded(dir)
        entries = _mapping(self._driver.list(where)).items()
        return [_told(where, name, node) for name, node in entries]

    def find(self, dir: bytes, name: bytes) -> Optional[_Told]:
        where, named = decoded(dir), decoded(name)
        node = self._driver.find(where, named)
        return None if node is None else _told(where, named, node)

    def read(self, file: Any, offset: int, length: int) -> bytes:
        read = self._driver.read(file, offset, length)
        return read if isinstance(read, bytes) else bytes(memoryview(read))


def _told(dir: str, name: str, node: Node) -> _Told:
    if not isinstance(node, _Node):
        raise TypeError(f"{name!r} is {node!r}, expected volary.File, Dir or Symlink")
    key = node.key
    if key is None:
        key = f"{dir}/{name}" if dir else name
    modified = int(node.mtime * 1_000_000_000)
    return (encoded(name), node.kind, node.size, key, node.target, node.mode, node.owner, modified)


def volume(
    driver: ReadOnly,
    *,
    name: Optional[str] = None,
    layers: Sequence[str] = (),
    memory: Optional[Size] = None,
    owner: Optional[Tuple[int, int]] = None,
) -> Volume:
    """Opens a driver in Python as a volume. ``name`` is what it is called in errors; its class unless it is said."""
    name = name or type(driver).__name__
    how = _how(None, layers, "", memory, None, owner)
    return Volume(_volary.open_tree(name, _Tree(driver), how), name)
