"""The data set, by PyTorch where it is installed, and by a stand-in of a few lines where it is not."""

import importlib
import multiprocessing
import sys
import types

import pytest
from conftest import FILES

try:
    import torch.utils.data as data
except ImportError:
    data = None


class _Worker:
    def __init__(self, id, num_workers):
        self.id = id
        self.num_workers = num_workers


class _Loader:
    """Forks workers as PyTorch's does."""

    def __init__(self, dataset, num_workers=0, batch_size=None, **_):
        self.dataset = dataset
        self.num_workers = num_workers

    def __iter__(self):
        if self.num_workers == 0:
            yield from self.dataset
            return
        context = multiprocessing.get_context("fork")
        queue = context.Queue()

        def work(index):
            sys.modules["torch.utils.data"].worker = _Worker(index, self.num_workers)
            try:
                for one in self.dataset:
                    queue.put(one)
                queue.put(None)
            except BaseException as e:
                queue.put(repr(e))

        workers = [context.Process(target=work, args=(i,)) for i in range(self.num_workers)]
        for worker in workers:
            worker.start()
        left = len(workers)
        while left:
            one = queue.get(timeout=60)
            if isinstance(one, str):
                raise RuntimeError(one)
            left -= one is None
            if one is not None:
                yield one
        for worker in workers:
            worker.join()


@pytest.fixture
def loader(monkeypatch):
    """PyTorch's loader, or the stand-in."""
    if data is not None:
        return data.DataLoader
    fake = types.ModuleType("torch.utils.data")
    fake.IterableDataset = type("IterableDataset", (), {})
    fake.worker = None
    fake.get_worker_info = lambda: fake.worker
    for name in ("torch", "torch.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "torch.utils.data", fake)
    monkeypatch.delitem(sys.modules, "volary.torch", raising=False)
    return _Loader


def test_each_file_once_whatever_the_workers(loader, mke2fs_ext4):
    Files = importlib.import_module("volary.torch").Files
    for workers in (0, 1, 3):
        dataset = Files(mke2fs_ext4, shuffle=1, window="1M")
        found = list(loader(dataset, batch_size=None, num_workers=workers))
        assert sorted(path for path, _, _ in found) == sorted(FILES)
        assert all(bytes(data) == FILES[path] for path, _, data in found)


def test_orders_shares_and_transforms(loader, tmp_path):
    import volary

    Files = importlib.import_module("volary.torch").Files
    volary.mkfs(tmp_path / "i", "ffs2", "64M")
    with volary.open(tmp_path / "i", write=True) as vol:
        for number in range(200):
            vol.write(f"/{number}", b"%d" % number)
    files = Files(tmp_path / "i", shuffle=5, transform=lambda path, stat, data: int(data))
    first = list(loader(files, batch_size=None))
    assert first == list(loader(files, batch_size=None)) and sorted(first) == list(range(200))
    files.set_epoch(1)
    second = list(loader(files, batch_size=None))
    assert second != first and sorted(second) == list(range(200))
    ranks = [
        list(loader(Files(tmp_path / "i", shard=(rank, 2)), batch_size=None, num_workers=2))
        for rank in range(2)
    ]
    paths = [path for rank in ranks for path, _, _ in rank]
    assert len(paths) == 200 == len(set(paths))
