"""Whole trees in the order in which they lie."""

import gc
import threading

import pytest
from conftest import FILES

import volary


@pytest.fixture
def many(tmp_path):
    image = tmp_path / "many.img"
    volary.mkfs(image, "fat32", "128M")
    with volary.open(image, write=True) as vol:
        for d in range(4):
            vol.mkdir(f"/d{d}")
            for i in range(250):
                vol.write(f"/d{d}/f{i}.{'txt' if i % 2 else 'bin'}", b"%d/%d " % (d, i) * (i + 1))
        vol.write("/large", bytes(range(256)) * (40 << 10))
    return str(image)


def test_each_file_once_and_whole(many, mtools_fat, makefs_ffs, mke2fs_ext4):
    for image in (mtools_fat, makefs_ffs, mke2fs_ext4):
        assert {path: data for path, _, data in volary.bulk(image)} == FILES
    with volary.open(many) as vol:
        found = list(volary.bulk(vol))
        assert len(found) == 1001 == len({path for path, _, _ in found})
        for path, stat, data in found:
            assert stat.size == len(data)
        for path, _, data in found[::50] + [one for one in found if one[0] == "/large"]:
            assert vol.read(path) == data


def test_seeds_patterns_and_shares(many):
    plain = [path for path, _, _ in volary.bulk(many)]
    one = [path for path, _, _ in volary.bulk(many, shuffle=7, window="8M")]
    assert one == [path for path, _, _ in volary.bulk(many, shuffle=7, window="8M")]
    assert one != plain and sorted(one) == sorted(plain)
    assert one != [path for path, _, _ in volary.bulk(many, shuffle=8, window="8M")]
    txt = {path for path, _, _ in volary.bulk(many, include=["*.txt"], exclude=["d1/"])}
    assert txt == {p for p in plain if p.endswith(".txt") and not p.startswith("/d1/")}
    shares = [[p for p, _, _ in volary.bulk(many, shard=(i, 3))] for i in range(3)]
    assert sorted(sum(shares, [])) == sorted(plain)
    assert all(200 < len(share) < 470 for share in shares)
    assert {p for p, _, _ in volary.bulk(many, ["/d0", "/large"])} == {
        p for p in plain if p.startswith("/d0/") or p == "/large"
    }
    with pytest.raises(ValueError):
        volary.bulk(many, shard=(3, 3))
    with pytest.raises(OSError):
        volary.bulk(many, include=["[z-a]"])


def test_what_is_too_large_or_missing_is_told(many):
    with pytest.raises(volary.Error, match="/large"):
        list(volary.bulk(many, largest="1M"))
    failed = []
    found = list(volary.bulk(many, ["/d0", "/large", "/no"], largest="1M", onerror=failed.append))
    assert len(found) == 250 and len(failed) == 2
    # A large file comes in chunks; a bound in the midst of them counts as well.
    assert len(list(volary.bulk(many, "/large", largest=10 << 20, memory="1M"))) == 1


def test_left_early_it_ends(many):
    before = threading.active_count()
    with volary.bulk(many) as files:
        next(files)
    assert list(files) == []
    files = volary.bulk(many)
    next(files)
    del files
    gc.collect()
    # Nobody reads the image any more.
    with volary.open(many, write=True) as vol:
        files = vol.bulk()
        next(files)
        vol.close()
        assert list(files) == []
    assert threading.active_count() == before


def test_other_threads_run_meanwhile(many):
    counted = 0
    stop = threading.Event()

    def count():
        nonlocal counted
        while not stop.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        assert len(list(volary.bulk(many))) == 1001
    finally:
        stop.set()
        thread.join()
    assert counted > 0


def test_threads_read_one_volume_together(many):
    with volary.open(many) as vol:
        wrong = []

        def read(d):
            for i in range(250):
                name = f"/d{d}/f{i}.{'txt' if i % 2 else 'bin'}"
                if vol.read(name) != b"%d/%d " % (d, i) * (i + 1):
                    wrong.append(name)

        threads = [threading.Thread(target=read, args=(d,)) for d in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
