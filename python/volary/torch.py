"""Files of a volume as a data set of PyTorch.

::

    from volary.torch import Files

    data = Files("images.img", shuffle=1, window="256M", include=["*.jpg"], transform=decode)
    for batch in torch.utils.data.DataLoader(data, batch_size=64, num_workers=4):
        ...
"""

from __future__ import annotations

import os
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from torch.utils.data import IterableDataset, get_worker_info

from ._bulk import LARGEST, bulk
from ._errors import Error
from ._types import Path, Size, Stat


class Files(IterableDataset):  # type: ignore[misc]
    """All files below some paths of a volume, read in the order in which they lie: ``(path, stat, bytes)``.

    ``image`` is what :func:`volary.open` opens; each worker opens it by itself, and reads its share of the files. ``shuffle``,
    ``window``, ``include``, ``exclude``, ``memory``, ``largest`` and ``onerror`` are those of :func:`volary.bulk`;
    ``transform`` makes of a path, a stat and bytes what is given in their place. ``shard=(rank, world_size)`` is the share of
    this process among several. With a seed, each epoch has an order of its own once :meth:`set_epoch` tells it.
    """

    def __init__(
        self,
        image: Any,
        paths: Union[Path, Iterable[Path]] = "/",
        *,
        shuffle: Optional[int] = None,
        window: Size = 64 << 20,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        shard: Tuple[int, int] = (0, 1),
        memory: Optional[Size] = None,
        largest: Size = LARGEST,
        onerror: Optional[Callable[[Error], Any]] = None,
        transform: Optional[Callable[[str, Stat, bytes], Any]] = None,
        **how: Any,
    ) -> None:
        super().__init__()
        if not 0 <= shard[0] < shard[1]:
            raise ValueError(f"no share: {shard}")
        self.image = image
        self.paths: List[Path] = (
            [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
        )
        self.shuffle = shuffle
        self.shard = shard
        self.transform = transform
        self.epoch = 0
        self._how = dict(
            window=window,
            include=list(include),
            exclude=list(exclude),
            memory=memory,
            largest=largest,
            onerror=onerror,
            **how,
        )

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch comes: the order is another one in each."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        index, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        rank, world = self.shard
        seed = None if self.shuffle is None else self.shuffle + self.epoch
        with bulk(
            self.image,
            self.paths,
            shuffle=seed,
            shard=(rank * count + index, world * count),
            **self._how,
        ) as files:
            for path, stat, data in files:
                yield (path, stat, data) if self.transform is None else self.transform(path, stat, data)
