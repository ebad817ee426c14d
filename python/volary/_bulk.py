"""Whole trees, in the order in which they lie."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence, Tuple, Type, Union

from . import _volary
from ._errors import Error
from ._types import Path, Size, Stat, bytes_of, decoded, encoded, stat_of
from ._volume import Volume, open

#: Larger files are not read unless it is said.
LARGEST = 1 << 30


class Bulk(Iterator[Tuple[str, Stat, bytes]]):
    """An iterator of ``(path, stat, bytes)``; see :func:`bulk`. Left early, it ends when it is closed or let go of."""

    def __init__(
        self,
        native: _volary.Bulk,
        volume: Volume,
        owns: bool,
        onerror: Optional[Callable[[Error], Any]],
    ) -> None:
        self._native = native
        self._volume = volume
        self._owns = owns
        self._onerror = onerror

    def __iter__(self) -> "Bulk":
        return self

    def __next__(self) -> Tuple[str, Stat, bytes]:
        while True:
            try:
                path, stat, data = next(self._native)
            except StopIteration:
                self.close()
                raise
            if not isinstance(data, Error):
                return decoded(path), stat_of(stat), data
            if self._onerror is None:
                self.close()
                raise data
            self._onerror(data)

    def close(self) -> None:
        """Ends it."""
        self._native.close()
        if self._owns:
            self._owns = False
            self._volume.close()

    def __enter__(self) -> "Bulk":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_owns", False):
            self.close()


def bulk(
    source: Any,
    paths: Union[Path, Iterable[Path]] = "/",
    *,
    shuffle: Optional[int] = None,
    window: Size = 64 << 20,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    shard: Optional[Tuple[int, int]] = None,
    memory: Optional[Size] = None,
    largest: Size = LARGEST,
    onerror: Optional[Callable[[Error], Any]] = None,
    **how: Any,
) -> Bulk:
    """Reads all files below some paths, whole, in the order in which they lie on the device.

    ``source`` is a volume, or what :func:`open` opens. The volume is read while your code works on what came before::

        for path, stat, data in volary.bulk("disk.img", include=["*.jpg"]):
            learn(data)

    ``shuffle`` is a seed: files come at random, the same for each seed, among about ``window`` bytes of them at a time.
    ``include`` and ``exclude`` are patterns as in a .gitignore. ``shard=(index, count)`` gives one of ``count`` shares, which
    have each file once. ``memory`` bounds what is read ahead; files of more than ``largest`` bytes are not read. What cannot
    be read raises, or is told to ``onerror``, and the rest goes on.
    """
    if shard is not None and not 0 <= shard[0] < shard[1]:
        raise ValueError(f"no share: {shard}")
    given: List[Path] = (
        [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
    )
    if isinstance(source, Volume):
        if how:
            raise TypeError(f"the volume is open already: {', '.join(how)}")
        volume, owns = source, False
    else:
        volume, owns = open(source, **how), True
    try:
        native = volume._native.bulk(
            [encoded(path) for path in given],
            seed=None if shuffle is None else shuffle % (1 << 64),
            window=bytes_of(window),
            memory=None if memory is None else bytes_of(memory),
            include=list(include),
            exclude=list(exclude),
            shard=shard,
            largest=bytes_of(largest),
        )
    except BaseException:
        if owns:
            volume.close()
        raise
    return volume._keep(Bulk(native, volume, owns, onerror))  # type: ignore[no-any-return]
