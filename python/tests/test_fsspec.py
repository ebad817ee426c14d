"""fsspec: its own tests, and what its users expect."""

import io
import multiprocessing
import os
import pickle
import threading
import time

import fsspec
import fsspec.tests.abstract as abstract
import pytest
from conftest import FILES

import volary
from volary.fsspec import VolaryFileSystem


@pytest.fixture(scope="module", params=["fat32", "ffs2", "cedar"])
def written(request, tmp_path_factory):
    image = tmp_path_factory.mktemp("fsspec") / "disk.img"
    volary.mkfs(image, request.param, "64M")
    fs = fsspec.filesystem("volary", fo=str(image), write=True)
    yield fs
    fs.close()
    assert volary.check(image).clean


class Fixtures(abstract.AbstractFixtures):
    """On an empty volume of each format that is written."""

    @pytest.fixture
    def fs(self, written):
        return written

    @pytest.fixture
    def fs_join(self):
        return lambda *parts: "/".join(parts)

    @pytest.fixture
    def fs_path(self, fs):
        fs.makedirs("top", exist_ok=True)
        yield "top"
        fs.rm("top", recursive=True)


class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass


@pytest.fixture
def read_only(fat):
    fs = fsspec.filesystem("volary", fo=fat, skip_instance_cache=True)
    yield fs
    fs.close()


def test_urls(fat, tmp_path):
    for url in (
        f"volary://docs/a.csv::{fat}",
        f"volary:///docs/a.csv::{fat}",
        f"volary://docs/a.csv::file://{fat}",
    ):
        with fsspec.open(url) as file:
            assert file.read() == FILES["/docs/a.csv"]
    with fsspec.open("volary://docs/a.csv", "rt", fo=fat) as file:
        assert file.readline() == "name,count\n"
    with fsspec.open_files(f"volary://docs/*.csv::{fat}") as files:
        assert [file.read() for file in files] == [FILES["/docs/a.csv"]]
    # A volume in something that fsspec alone knows.
    with open(fat, "rb") as file:
        fsspec.filesystem("memory").pipe("/images/disk.img", file.read())
    with fsspec.open("volary://top.txt::memory://images/disk.img") as file:
        assert file.read() == b"top\n"
    with pytest.raises(ValueError):
        fsspec.filesystem("volary", fo="memory://images/disk.img", write=True)
    with open(fat, "rb") as file:
        fs = VolaryFileSystem(fo=io.BytesIO(file.read()))
        assert fs.cat("top.txt") == b"top\n"
    with pytest.raises(ValueError, match="no volume"):
        fsspec.filesystem("volary")
    with pytest.raises(FileNotFoundError):
        fsspec.filesystem("volary", fo="/nowhere/disk.img")


def test_reading(read_only):
    fs = read_only
    assert fs.ls("", detail=False) == ["docs", "top.txt"]
    assert fs.ls("/docs/", detail=False) == ["docs/a.csv", "docs/deep", "docs/empty"]
    assert fs.ls("docs/a.csv", detail=False) == ["docs/a.csv"]
    assert sorted(fs.find("")) == sorted(path[1:] for path in FILES)
    assert fs.glob("docs/**/*.bin") == ["docs/deep/er/b.bin"]
    assert fs.du("") == sum(map(len, FILES.values()))
    assert fs.info("docs")["type"] == "directory" and fs.info("top.txt")["size"] == 4
    assert fs.isdir("docs") and fs.isfile("top.txt") and not fs.exists("none")
    assert fs.cat_file("top.txt", start=-2) == b"p\n" and fs.cat_file("top.txt", 1, 2) == b"o"
    assert fs.head("docs/deep/er/b.bin", 3) == b"\0\1\2" and fs.tail("top.txt", 2) == b"p\n"
    assert fs.cat(["top.txt", "docs/a.csv"]) == {
        "top.txt": b"top\n",
        "docs/a.csv": FILES["/docs/a.csv"],
    }
    assert fs.cat("docs", recursive=True)["docs/empty"] == b""
    assert isinstance(fs.cat(["top.txt", "none"], on_error="return")["none"], FileNotFoundError)
    assert list(fs.cat(["top.txt", "none"], on_error="omit")) == ["top.txt"]
    ranges = fs.cat_ranges(["top.txt", "docs/deep/er/b.bin", "none"], 1, 3)
    assert ranges[:2] == [b"op", b"\1\2"] and isinstance(ranges[2], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges(["none"], [0], [1], on_error="raise")
    with fs.open("docs/deep/er/b.bin") as file:
        assert file.size == 76_800
        file.seek(256 * 299 + 7)
        assert file.read(3) == b"\7\10\11"
    assert abs(fs.modified("top.txt").timestamp() - time.time()) < 100_000
    assert fs.created("top.txt").tzinfo is not None
    assert fs.checksum("top.txt") != fs.checksum("docs/a.csv")
    assert fs.ukey("top.txt") == fs.ukey("top.txt")
    mapper = fs.get_mapper("docs")
    assert mapper["a.csv"] == FILES["/docs/a.csv"] and "none" not in mapper


def test_a_volume_that_is_only_read_refuses_each_change(read_only):
    fs = read_only
    for change in (
        lambda: fs.pipe("x", b"1"),
        lambda: fs.open("x", "wb"),
        lambda: fs.touch("x"),
        lambda: fs.mkdir("x"),
        lambda: fs.makedirs("x/y"),
        lambda: fs.rm("top.txt"),
        lambda: fs.rm("docs", recursive=True),
        lambda: fs.mv("top.txt", "x"),
        lambda: fs.copy("top.txt", "x"),
        lambda: fs.rmdir("docs/deep/er"),
    ):
        with pytest.raises(OSError):
            change()
    assert sorted(fs.find("")) == sorted(path[1:] for path in FILES)


def test_changes(fat):
    fs = fsspec.filesystem("volary", fo=fat, write=True)
    fs.mv("docs/a.csv", "b.csv")
    fs.mv("b.csv", "docs/deep")
    assert fs.cat("docs/deep/b.csv") == FILES["/docs/a.csv"]
    fs.cp("docs/deep/b.csv", "docs/deep/b.csv")
    assert fs.cat("docs/deep/b.csv") == FILES["/docs/a.csv"], "a copy onto itself empties nothing"
    fs.touch("t")
    fs.pipe("t", b"12")
    fs.touch("t", truncate=False)
    assert fs.cat("t") == b"12"
    fs.touch("t")
    assert fs.cat("t") == b""
    with pytest.raises(FileExistsError):
        fs.pipe_file("t", b"", mode="create")
    with pytest.raises(FileExistsError):
        fs.mkdir("docs")
    fs.makedirs("docs", exist_ok=True)
    with pytest.raises(OSError):
        fs.rmdir("docs")
    with pytest.raises(NotADirectoryError):
        fs.rmdir("t")
    with pytest.raises(OSError):
        fs.rm("docs")
    with fs.open("new/dirs/f", "wb") as file:
        file.write(b"1")
    with fs.open("new/dirs/f", "ab") as file:
        file.write(b"2")
    with fs.open("new/dirs/f", "r+b") as file:
        file.seek(1)
        file.write(b"3")
    assert fs.cat("new/dirs/f") == b"13"
    fs.rm("", recursive=True)
    assert fs.ls("") == []
    fs.close()
    assert fs.ls("") == [], "it opens its volume again"
    fs.close()


def test_transactions_are_whole_or_nothing(fat):
    fs = fsspec.filesystem("volary", fo=fat, write=True)
    with fs.transaction:
        with fs.open("top.txt", "wb") as file:
            file.write(b"new")
        with fs.open("other", "wb") as file:
            file.write(b"new too")
        assert fs.cat("top.txt") == b"top\n" and not fs.exists("other")
    assert fs.cat(["top.txt", "other"]) == {"top.txt": b"new", "other": b"new too"}
    with pytest.raises(RuntimeError):
        with fs.transaction:
            with fs.open("top.txt", "wb") as file:
                file.write(b"never")
            raise RuntimeError
    assert fs.cat("top.txt") == b"new"
    assert sorted(fs.ls("", detail=False)) == ["docs", "other", "top.txt"]
    fs.close()


def test_symlinks(tmp_path):
    volary.mkfs(tmp_path / "i", "ffs2", "64M")
    fs = fsspec.filesystem("volary", fo=str(tmp_path / "i"), write=True)
    fs.pipe("d/f", b"1234")
    fs.symlink("d/f", "good")
    fs.symlink("nowhere", "bad")
    fs.symlink("d", "dir")
    found = {one["name"]: (one["type"], one["islink"], one["size"]) for one in fs.ls("")}
    assert found["good"] == ("file", True, 4) and found["dir"] == ("directory", True, 0)
    assert found["bad"][:2] == ("other", True) and fs.lexists("bad") and not fs.exists("bad")
    fs.rm("dir", recursive=True)
    fs.rm("bad")
    assert fs.cat("d/f") == b"1234"
    fs.close()


def test_pickled_and_opened_again(fat, read_only):
    copy = pickle.loads(pickle.dumps(read_only))
    assert copy.cat("top.txt") == b"top\n"
    with fsspec.open(f"volary://top.txt::{fat}") as file:
        assert file.read() == b"top\n"
    opened = fsspec.open(f"volary://top.txt::{fat}")
    with pickle.loads(pickle.dumps(opened)) as file:
        assert file.read() == b"top\n"


def _cat(fs, queue):
    try:
        queue.put(fs.cat("top.txt"))
    except BaseException as e:
        queue.put(repr(e))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_in_other_processes(fat, read_only, method):
    assert read_only.cat("top.txt") == b"top\n"
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    worker = context.Process(target=_cat, args=(read_only, queue))
    worker.start()
    assert queue.get(timeout=60) == b"top\n"
    worker.join()
    assert read_only.cat("top.txt") == b"top\n"


def test_a_volume_open_for_changes_is_not_opened_in_another_process(fat):
    fs = fsspec.filesystem("volary", fo=fat, write=True)
    fs.pipe("mine", b"1")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    worker = context.Process(target=_cat, args=(fs, queue))
    worker.start()
    assert "Busy" in queue.get(timeout=60)
    worker.join()
    assert fs.cat("mine") == b"1"
    fs.close()
    assert volary.check(fat).clean


def test_threads_share_a_volume(fat):
    # fsspec makes an instance for each thread.
    url = f"volary://shared/%d::{fat}"
    failed = []

    def work(number):
        try:
            with fsspec.open(url % number, "wb", volary={"write": True}) as file:
                file.write(b"%d" % number)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    fs = fsspec.filesystem("volary", fo=fat, write=True)
    assert sorted(fs.cat("shared/*").values()) == [b"%d" % n for n in range(8)]
    fs.close()


def test_of_a_volume_that_is_open(vol):
    vol.write("/f", b"1")
    fs = vol.fs
    assert fs.cat("f") == b"1"
    fs.close()
    assert not vol.closed


def test_local_files_go_in_and_out(fat, tmp_path, tree):
    fs = fsspec.filesystem("volary", fo=fat, write=True)
    fs.put(str(tree), "copied", recursive=True)
    assert fs.cat("copied/docs/a.csv") == FILES["/docs/a.csv"]
    fs.get("copied", str(tmp_path / "out"), recursive=True)
    out = {
        "/" + os.path.relpath(os.path.join(top, name), tmp_path / "out")
        for top, _, names in os.walk(tmp_path / "out")
        for name in names
    }
    assert out == set(FILES)
    assert (tmp_path / "out/docs/deep/er/b.bin").read_bytes() == FILES["/docs/deep/er/b.bin"]
    fs.close()
