"""Volumes by paths."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import traceback
import warnings
import weakref
from types import TracebackType
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    MutableMapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from . import _volary
from ._device import Reader
from ._errors import Error
from ._files import opened
from ._types import Entry, Path, Size, Space, Stat, bytes_of, decoded, encoded, stat_of

if TYPE_CHECKING:
    from ._bulk import Bulk
    from ._serving import Mount, Server
    from .fsspec import VolaryFileSystem

_OPEN: "weakref.WeakSet[Volume]" = weakref.WeakSet()


class Volume:
    """A volume that is open, by paths. :func:`open` and :func:`volume` give one; use it in a ``with``.

    Paths begin at the root, with a slash or without; symlinks are followed within the volume. Methods may be called from
    any number of threads, and let other threads run while they wait.

    Closing makes everything durable. A volume that is left open when Python ends is closed then; what was written becomes
    durable within seconds in any case, and at once by :meth:`sync`.

    A process that was forked off (``multiprocessing``) cannot use a volume that was open before: it opens it anew.
    Read-only volumes can be pickled, which does so.
    """

    def __init__(
        self, native: _volary.Vol, name: str, reopen: Optional[Tuple[Any, ...]] = None
    ) -> None:
        self._native = native
        self.name = name
        self._reopen = reopen
        self._writable = native.is_writable()
        self._lock = threading.Lock()
        self._users: "weakref.WeakSet[Any]" = weakref.WeakSet()
        _OPEN.add(self)

    def __repr__(self) -> str:
        state = "" if self._native.is_open else " closed"
        return f"<volary.Volume {self.name!r}{state}>"

    # The end.

    def close(self) -> None:
        """Closes what is open on the volume, makes everything durable and marks the volume as cleanly left.

        Files are flushed, servers stopped, mounts unmounted. At the second call nothing happens.
        """
        if not self._native.is_open:
            return
        failed: Optional[BaseException] = None
        with self._lock:
            users = list(self._users)
        for user in users:
            try:
                user.close()
            except Exception as e:
                failed = failed or e
        self._native.close()
        _OPEN.discard(self)
        if failed is not None:
            raise failed

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used here: it is closed, or was opened before this process was forked off."""
        return not self._native.is_open

    @property
    def writable(self) -> bool:
        """Whether it takes changes."""
        return self._writable

    def __enter__(self) -> "Volume":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __del__(self) -> None:
        native = getattr(self, "_native", None)
        if native is not None and native.is_open and self._writable:
            warnings.warn(f"unclosed volume {self.name!r}", ResourceWarning, source=self)

    def __reduce__(self) -> Any:
        if self._reopen is None or self._writable:
            raise TypeError(
                f"cannot pickle {self!r}: only a read-only volume of a name can be opened again elsewhere"
            )
        return _reopened, self._reopen

    def _keep(self, user: Any) -> Any:
        """Closes ``user`` before the volume is."""
        with self._lock:
            self._users.add(user)
        return user

    def sync(self) -> None:
        """Makes all changes so far durable. What stands in buffers of open files is not among them."""
        self._native.sync()

    def space(self) -> Space:
        """Returns how full it is."""
        return Space._make(self._native.space())

    # Files.

    def read(self, path: Path) -> bytes:
        """Returns all that a file holds."""
        return self._native.read(encoded(path))

    def read_at(self, path: Path, offset: int, length: int) -> bytes:
        """Returns ``length`` bytes from ``offset`` on: fewer only at the end of the file."""
        return self._native.read_at(encoded(path), offset, length)

    def cat_ranges(
        self,
        paths: Sequence[Path],
        starts: Union[None, int, Sequence[Optional[int]]] = None,
        ends: Union[None, int, Sequence[Optional[int]]] = None,
        on_error: str = "raise",
    ) -> List[Any]:
        """Returns bytes of many files, or many ranges of some, in one call.

        They are read in the order in which they lie, and those close to each other at once. ``None`` is the beginning, or
        the end; what is negative counts from the end. With ``on_error="return"`` exceptions stand in place of bytes.
        """
        count = len(paths)
        asked = [
            (encoded(path), start, end)
            for path, start, end in zip(paths, _each(starts, count), _each(ends, count))
        ]
        if not len(asked) == count:
            raise ValueError("as many paths as starts and ends are needed")
        found = self._native.cat_ranges(asked)
        if on_error == "raise":
            for one in found:
                if isinstance(one, BaseException):
                    raise one
        elif on_error != "return":
            raise ValueError(f"on_error is {on_error!r}, expected 'raise' or 'return'")
        return found

    def write(self, path: Path, data: Any) -> None:
        """Makes a file that holds ``data``, or gives one that is there this content.

        Until all is written the old content stands, after a failure and a power cut too.
        """
        self._native.write(encoded(path), _bytes(data))

    def append(self, path: Path, data: Any) -> None:
        """Adds ``data`` at the end of a file, which is made if it is not there."""
        self._native.append(encoded(path), _bytes(data))

    def open(
        self,
        path: Path,
        mode: str = "r",
        buffering: int = -1,
        encoding: Optional[str] = None,
        errors: Optional[str] = None,
        newline: Optional[str] = None,
    ) -> IO[Any]:
        """Opens a file, as the built-in ``open`` does::

            with vol.open("/data.csv", newline="") as f:
                rows = list(csv.reader(f))

        A file that is still open when the volume is closed is flushed and closed with it.
        """
        raw, name = encoded(path), decoded(encoded(path))
        file = opened(self, raw, name, mode, buffering, encoding, errors, newline)
        return self._keep(file)  # type: ignore[no-any-return]

    # Names.

    def stat(self, path: Path, *, follow_symlinks: bool = True) -> Stat:
        """Returns what is known of a file or directory."""
        return stat_of(self._native.stat(encoded(path), follow_symlinks))

    def exists(self, path: Path) -> bool:
        """Returns whether there is something of this name. A symlink that leads nowhere is not there."""
        return self._kind(path) is not None

    def is_dir(self, path: Path) -> bool:
        """Returns whether there is a directory of this name."""
        return self._kind(path) == "directory"

    def is_file(self, path: Path) -> bool:
        """Returns whether there is a regular file of this name."""
        return self._kind(path) == "file"

    def _kind(self, path: Path) -> Optional[str]:
        try:
            return self.stat(path).kind
        except (FileNotFoundError, NotADirectoryError):
            return None

    def list(self, path: Path = "/") -> List[Entry]:
        """Returns the entries of a directory, in the order in which they are stored."""
        raw = encoded(path)
        before = decoded(raw).rstrip("/") + "/"
        return [_entry(decoded(name), before + decoded(name), kind, stat)
                for name, kind, stat in self._native.list(raw)]

    def walk(
        self, path: Path = "/", onerror: Optional[Callable[[Error], Any]] = None
    ) -> Iterator[Entry]:
        """Gives all below a directory, each directory before what is in it. Symlinks are not followed.

        What cannot be listed raises, or is told to ``onerror``, and the walk goes on after it.
        """
        walk = self._native.walk(encoded(path))
        try:
            while True:
                try:
                    found = next(walk)
                except StopIteration:
                    return
                except Error as e:
                    if onerror is None:
                        raise
                    onerror(e)
                    continue
                whole = decoded(found[0])
                yield _entry(whole.rsplit("/", 1)[-1], whole, found[1], found[2])
        finally:
            walk.close()

    def mkdir(self, path: Path, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Makes a directory; with ``parents`` those above it too."""
        raw = encoded(path)
        if parents and (exist_ok or not self.exists(path)):
            self._native.mkdir(raw, True)
            return
        try:
            self._native.mkdir(raw, False)
        except FileExistsError:
            if not exist_ok or not self.is_dir(path):
                raise

    def remove(self, path: Path, *, recursive: bool = False) -> None:
        """Removes a file, a symlink or an empty directory; with ``recursive`` all below it first."""
        self._native.remove(encoded(path), recursive)

    def rename(self, old: Path, new: Path) -> None:
        """Gives a file or directory another path, and replaces a file or an empty directory that has it."""
        self._native.rename(encoded(old), encoded(new))

    def symlink(self, target: Path, path: Path) -> None:
        """Makes a symlink at ``path`` that holds ``target``."""
        self._native.symlink(encoded(target), encoded(path))

    def link(self, file: Path, path: Path) -> None:
        """Gives a file one more name."""
        self._native.link(encoded(file), encoded(path))

    def readlink(self, path: Path) -> str:
        """Returns what a symlink holds."""
        return decoded(self._native.read_link(encoded(path)))

    # Attributes.

    def chmod(self, path: Path, mode: int) -> None:
        """Sets the permission bits: ``0o644``."""
        self._native.set_attr(encoded(path), mode=mode & 0o7777)

    def chown(self, path: Path, uid: int, gid: int) -> None:
        """Sets owner and group."""
        self._native.set_attr(encoded(path), uid=uid, gid=gid)

    def utime(self, path: Path, *, atime_ns: int, mtime_ns: int) -> None:
        """Sets the times of the last access and the last change, as exactly as the format can keep them."""
        self._native.set_attr(encoded(path), accessed=atime_ns, modified=mtime_ns)

    def xattrs(self, path: Path) -> "Xattrs":
        """Returns the extended attributes of a file or directory: ``vol.xattrs("/a")["user.comment"]``."""
        return Xattrs(self, encoded(path))

    # All of it.

    def copy_in(self, source: Path, path: Path = "/") -> int:
        """Copies a file or a tree of the host into the volume, and returns how many files.

        It goes into the directory ``path`` if that is one, else it becomes ``path``; a source that ends with ``/.`` is all
        that is in a directory. Modes, times, holes, hard links and extended attributes stay as far as the volume keeps
        them; symlinks are copied as symlinks. The first thing that could not be copied is raised, after all else was.
        """
        return self._native.copy_in(os.fsencode(source), encoded(path))

    def copy_out(self, path: Path, target: Path) -> int:
        """Copies a file or a tree of the volume to the host, the same way.

        Whatever names the volume has, nothing is written outside of ``target``.
        """
        return self._native.copy_out(encoded(path), os.fsencode(target))

    def bulk(self, paths: Union[Path, Iterable[Path]] = "/", **how: Any) -> "Bulk":
        """Reads all files below some paths in the order in which they lie; see :func:`volary.bulk`."""
        from ._bulk import bulk

        return bulk(self, paths, **how)

    def serve(self, **how: Any) -> "Server":
        """Serves it by NFS or SMB; see :func:`volary.serve`."""
        from ._serving import serve

        return serve(self, **how)

    def mount(self, dir: Union[str, "os.PathLike[str]"], **how: Any) -> "Mount":
        """Mounts it on a directory of this host; see :func:`volary.mount`."""
        from ._serving import mount

        return mount(self, dir, **how)

    @property
    def fs(self) -> "VolaryFileSystem":
        """It as a file system of fsspec."""
        from .fsspec import VolaryFileSystem

        return VolaryFileSystem(volume=self, skip_instance_cache=True)


class Xattrs(MutableMapping[str, bytes]):
    """The extended attributes of a file or directory, by name."""

    def __init__(self, volume: Volume, path: bytes) -> None:
        self._volume = volume
        self._path = path

    def __getitem__(self, name: str) -> bytes:
        try:
            return self._volume._native.xattr(self._path, encoded(name))
        except Error as e:
            if e.kind == "NoXattr":
                raise KeyError(name) from e
            raise

    def __setitem__(self, name: str, value: bytes) -> None:
        self._volume._native.set_xattr(self._path, encoded(name), _bytes(value))

    def __delitem__(self, name: str) -> None:
        try:
            self._volume._native.remove_xattr(self._path, encoded(name))
        except Error as e:
            if e.kind == "NoXattr":
                raise KeyError(name) from e
            raise

    def __iter__(self) -> Iterator[str]:
        return iter([decoded(name) for name in self._volume._native.xattr_names(self._path)])

    def __len__(self) -> int:
        return len(self._volume._native.xattr_names(self._path))


def open(
    source: Any,
    *,
    write: bool = False,
    kind: Optional[str] = None,
    layers: Sequence[str] = (),
    options: str = "",
    memory: Optional[Size] = None,
    umask: Optional[int] = None,
    owner: Optional[Tuple[int, int]] = None,
) -> Volume:
    """Opens a volume, for reading unless ``write``.

    ``source`` is an image (``"disk.img"``), a partition of one (``"disk.img#2"``), ``"mem:"``, ``"mem:64M"``,
    ``"host:DIR"``, ``"nfs://HOST/EXPORT"``; or a binary file object that can be read and sought, which is only read.

    ``kind`` says what the volume is (``"fat32"``) where it is not to be recognised. ``layers`` are put over it, the first
    lowest: ``["casefold", "subtree=/docs"]``. ``options`` are the format's: ``"names=lower,uid=5"``. ``memory`` bounds the
    caches. ``umask`` and ``owner`` are for new files; this process's unless they are said.

    While it is open for changes nobody else can open the image; while it is open for reading nobody can change it::

        with volary.open("disk.img", write=True) as vol:
            vol.write("/a", b"text")
    """
    how = _how(kind, layers, options, memory, umask, owner)
    if hasattr(source, "read") and hasattr(source, "seek"):
        if write:
            raise ValueError("a volume in a file object is only read; give its name to change it")
        reader = Reader(source)
        native = _volary.open_device(reader.name, reader, reader.size, how)
        return Volume(native, reader.name)
    raw = _absolute(os.fspath(source))
    native = _volary.open(encoded(raw), write, how)
    return Volume(native, decoded(encoded(source)), (raw, how))


def _reopened(source: Union[str, bytes], how: Dict[str, Any]) -> Volume:
    return Volume(_volary.open(encoded(source), False, how), decoded(encoded(source)), (source, how))


def _how(
    kind: Optional[str],
    layers: Sequence[str],
    options: str,
    memory: Optional[Size],
    umask: Optional[int],
    owner: Optional[Tuple[int, int]],
) -> Dict[str, Any]:
    if isinstance(layers, str):
        raise TypeError("layers is a list of texts")
    return {
        "kind": kind,
        "layers": list(layers),
        "options": options,
        "memory": None if memory is None else bytes_of(memory),
        "umask": umask,
        "owner": owner,
    }


def _absolute(source: Union[str, bytes]) -> Union[str, bytes]:
    """Returns a name that means the same after a change of the working directory."""
    return os.path.abspath(source) if os.path.exists(source) else source


def _entry(name: str, path: str, kind: str, stat: Optional[Tuple[Any, ...]]) -> Entry:
    return Entry(name, path, kind, None if stat is None else stat_of(stat))


def _bytes(data: Any) -> bytes:
    if isinstance(data, str):
        raise TypeError("a bytes-like object is required, not 'str'")
    return data if isinstance(data, bytes) else bytes(memoryview(data))


def _each(
    given: Union[None, int, Sequence[Optional[int]]], count: int
) -> Sequence[Optional[int]]:
    if given is None or isinstance(given, int):
        return [given] * count
    if len(given) != count:
        raise ValueError("as many starts and ends as paths are needed")
    return given


@atexit.register
def _close_all() -> None:
    for volume in list(_OPEN):
        try:
            volume.close()
        except Exception:
            print(f"volary: closing {volume.name} at the end:", file=sys.stderr)
            traceback.print_exc()
