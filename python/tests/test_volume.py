"""Volumes by paths."""

import errno
import io
import os
import pathlib
import pickle
import stat
import zipfile

import pytest
from conftest import FILES, need, run

import volary
from volary import _errors, _volary


def test_what_others_wrote_is_read(mtools_fat, makefs_ffs, mke2fs_ext4):
    for image in (mtools_fat, makefs_ffs, mke2fs_ext4):
        with volary.open(image) as vol:
            found = {e.path: vol.read(e.path) for e in vol.walk() if e.is_file}
            assert found == FILES
            assert vol.stat("/docs/a.csv").size == 24
            assert not vol.writable


def test_others_read_what_was_written(tmp_path):
    image = tmp_path / "disk.img"
    volary.mkfs(image, "fat32", "64M", label="SHARED")
    with volary.open(image, write=True) as vol:
        vol.mkdir("/Some Directory")
        vol.write("/Some Directory/a long name.txt", b"text" * 1000)
    read = run(need("mcopy"), "-n", "-i", image, "::/Some Directory/a long name.txt", "-").stdout
    assert read == b"text" * 1000
    assert b"SHARED" in run(need("mlabel"), "-s", "-i", image, "::").stdout
    run(need("fsck.fat"), "-n", image)


def test_trees_go_in_and_come_out(tmp_path):
    tree = tmp_path / "tree"
    (tree / "docs" / "empty").mkdir(parents=True)
    (tree / "docs" / "big").write_bytes(os.urandom(300_000))
    (tree / "a file").write_bytes(b"alpha")
    os.utime(tree / "a file", (10**9, 10**9))
    image = tmp_path / "disk.img"
    volary.mkfs(image, "fat32", "64M")
    with volary.open(image, write=True) as vol:
        # A path of pathlib has no "/." at its end.
        assert vol.copy_in(f"{tree}/.") == 2
        assert vol.copy_in(str(tree / "docs"), "/again") == 1
        with pytest.raises(FileNotFoundError, match="gone"):
            vol.copy_in(tmp_path / "gone")
    assert run(need("mcopy"), "-n", "-i", image, "::/a file", "-").stdout == b"alpha"
    run(need("fsck.fat"), "-n", image)
    with volary.open(image) as vol:
        out = tmp_path / "out"
        assert vol.copy_out("/", out) == 3
        with pytest.raises(OSError):
            vol.copy_in(tree, "/new")
        with pytest.raises(FileNotFoundError):
            vol.copy_out("/gone", tmp_path)
    assert (out / "a file").stat().st_mtime == 10**9
    assert (out / "again" / "big").read_bytes() == (tree / "docs" / "big").read_bytes()
    assert (out / "docs" / "empty").is_dir()
    run("diff", "-r", tree / "docs", out / "docs")


def test_files_and_names(vol):
    vol.mkdir("/a/b", parents=True)
    vol.mkdir("/a/b", parents=True, exist_ok=True)
    with pytest.raises(FileExistsError):
        vol.mkdir("/a/b", parents=True)
    with pytest.raises(FileNotFoundError):
        vol.mkdir("/x/y")
    vol.write("/a/b/f", b"0123456789")
    vol.append("a/b/f", bytearray(b"ab"))
    assert vol.read(pathlib.PurePosixPath("/a/b/f")) == b"0123456789ab"
    assert vol.read_at(b"/a/b/f", 10, 100) == b"ab"
    assert vol.read_at("/a/b/f", 100, 100) == b""
    vol.rename("/a/b/f", "/g")
    assert [e.name for e in vol.list("/a/b")] == []
    assert vol.exists("/g") and vol.is_file("/g") and not vol.exists("/a/b/f")
    with pytest.raises(IsADirectoryError):
        vol.read("/a")
    with pytest.raises(NotADirectoryError):
        vol.list("/g")
    with pytest.raises(OSError) as e:
        vol.remove("/a")
    assert e.value.errno == errno.ENOTEMPTY
    vol.remove("/a", recursive=True)
    assert [e.path for e in vol.walk()] == ["/g"]
    assert vol.space().free > 0
    vol.sync()


def test_text_is_no_bytes(vol):
    with pytest.raises(TypeError):
        vol.write("/a", "text")


def test_attributes(tmp_path):
    image = tmp_path / "ffs.img"
    volary.mkfs(image, "ffs2", "64M")
    with volary.open(image, write=True, umask=0o027) as vol:
        vol.write("/f", b"1")
        assert vol.stat("/f").mode == stat.S_IFREG | 0o640
        vol.chmod("/f", 0o600)
        vol.chown("/f", 12, 34)
        vol.utime("/f", atime_ns=5_000_000_007, mtime_ns=-1_000_000_001)
        vol.symlink("f", "/s")
        vol.link("/f", "/l")
        told = vol.stat("/s")
        assert (told.mode & 0o777, told.uid, told.gid, told.nlink) == (0o600, 12, 34, 2)
        assert (told.atime_ns, told.mtime_ns) == (5_000_000_007, -1_000_000_001)
        assert vol.readlink("/s") == "f"
        assert vol.stat("/s", follow_symlinks=False).kind == "symlink"
        xattrs = vol.xattrs("/f")
        xattrs["user.comment"] = b"kept"
        assert dict(xattrs) == {"user.comment": b"kept"} and len(xattrs) == 1
        del xattrs["user.comment"]
        with pytest.raises(KeyError):
            xattrs["user.comment"]
        with pytest.raises(KeyError):
            del xattrs["user.comment"]


def test_names_that_are_no_text(tmp_path):
    volary.mkfs(tmp_path / "i", "ffs2", "64M")
    with volary.open(tmp_path / "i", write=True) as vol:
        vol.write(b"/\xff\xfe", b"odd")
        (entry,) = vol.list()
        assert entry.name == "\udcff\udcfe"
        assert vol.read(entry.path) == b"odd"
        with pytest.raises(FileNotFoundError) as e:
            vol.read("/\udcfd\n")
        assert "\n" not in str(e.value)


def test_many_ranges_in_one_call(vol):
    data = os.urandom(300_000)
    vol.write("/big", data)
    vol.write("/small", b"0123456789")
    paths = ["/big", "/small", "/big", "/small", "/big", "/missing", "/big", "/small"]
    starts = [0, -3, 250_000, None, 10, 0, 299_999, 4]
    ends = [10, None, 250_010, -8, 5, 1, 400_000, 4]
    found = vol.cat_ranges(paths, starts, ends, on_error="return")
    assert isinstance(found[5], FileNotFoundError)
    del found[5]
    assert found == [data[:10], b"789", data[250_000:250_010], b"01", b"", data[299_999:], b""]
    with pytest.raises(FileNotFoundError):
        vol.cat_ranges(paths, starts, ends)
    with pytest.raises(ValueError):
        vol.cat_ranges(paths, starts[1:], ends)
    assert vol.cat_ranges([]) == []
    every = [(at, at + 7) for at in range(0, 300_000, 997)]
    found = vol.cat_ranges(["/big"] * len(every), [s for s, _ in every], [e for _, e in every])
    assert found == [data[s:e] for s, e in every]


def test_more_files_than_are_open_at_once(vol):
    names = [f"/f{i}" for i in range(1200)]
    for name in names:
        vol.write(name, name.encode())
    assert vol.cat_ranges(names) == [name.encode() for name in names]


def test_errors_are_pythons_own(fat):
    with volary.open(fat) as vol:
        with pytest.raises(volary.NotFound, match="cannot read .*few.img:/nothing: no such file"):
            vol.read("/nothing")
        with pytest.raises(OSError) as e:
            vol.write("/a", b"1")
        assert e.value.errno == errno.EROFS and e.value.kind == "ReadOnly"
    with pytest.raises(volary.Error) as e:
        vol.read("/top.txt")
    assert e.value.errno == errno.ESTALE
    copy = pickle.loads(pickle.dumps(e.value))
    assert (type(copy), str(copy), copy.kind) == (volary.Error, str(e.value), "Stale")
    with pytest.raises(FileNotFoundError):
        volary.open("/nowhere/disk.img")
    with pytest.raises(OSError):
        volary.open(fat, options="nonsense=1")
    with pytest.raises(TypeError):
        volary.open(fat, layers="casefold")


def test_every_kind_of_error_has_an_exception():
    assert set(_volary.kinds()) == set(_errors._KINDS)
    for kind in _volary.kinds():
        assert _errors.of_kind(kind, "words").errno > 0


def test_layers_and_options(fat):
    with volary.open(fat, layers=["subtree=/docs", "readonly"], memory="16M") as vol:
        assert vol.read("/a.csv").startswith(b"name")
    with pytest.raises(OSError, match="no-such-layer"):
        volary.open(fat, layers=["no-such-layer"])


def test_volumes_in_file_objects(fat, tmp_path):
    with open(fat, "rb") as file:
        whole = file.read()
    with volary.open(io.BytesIO(whole)) as vol:
        assert vol.read("/top.txt") == b"top\n"
        assert len(list(volary.bulk(vol))) == len(FILES)
    with zipfile.ZipFile(tmp_path / "z.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.write(fat, "disk.img")
    with zipfile.ZipFile(tmp_path / "z.zip") as z, z.open("disk.img") as file:
        with volary.open(file) as vol:
            assert vol.read("/docs/a.csv") == FILES["/docs/a.csv"]
    with pytest.raises(ValueError):
        volary.open(io.BytesIO(whole), write=True)
    with pytest.raises(OSError):
        volary.open(io.BytesIO(b"short"))


def test_a_file_object_that_fails_is_an_error_with_its_words(fat):
    class Failing(io.FileIO):
        fails = False

        def read(self, size=-1):
            if self.fails:
                raise RuntimeError("the network is gone")
            return super().read(size)

    file = Failing(fat)
    with volary.open(file, memory="1M") as vol:
        file.fails = True
        with pytest.raises(OSError, match="the network is gone") as e:
            vol.read("/docs/deep/er/b.bin")
        assert isinstance(e.value.__cause__, RuntimeError)
    file.close()


def test_checks_and_new_volumes(tmp_path):
    image = tmp_path / "disk.img"
    volary.mkfs(image, "fat32", "64M")
    with pytest.raises(FileExistsError):
        volary.mkfs(image, "fat32", "64M")
    volary.mkfs(image, "ffs2", 32 << 20, overwrite=True)
    assert image.stat().st_size == 32 << 20
    with pytest.raises(ValueError):
        volary.mkfs(tmp_path / "n", "fat32", "huge")
    with pytest.raises(OSError):
        volary.mkfs(tmp_path / "n", "no-such-kind", "64M")
    assert not (tmp_path / "n").exists()
    assert volary.check(image)
    volary.mkfs(image, "fat32", "64M", overwrite=True)
    with open(image, "r+b") as file:
        # The second copy of the FAT says something else.
        file.seek(32 * 512)
        reserved = 32
        file.seek(14)
        reserved = int.from_bytes(file.read(2), "little")
        file.seek(36)
        length = int.from_bytes(file.read(4), "little")
        file.seek((reserved + length) * 512 + 400)
        file.write(b"\x07\x00\x00\x00")
    result = volary.check(image)
    assert not result and result.findings and result.found > 0
    assert all(f.code and f.message for f in result.findings)
    mended = volary.check(image, repair=True)
    assert mended.clean and mended.mended == mended.found
    assert volary.check(image).clean


def test_read_only_volumes_are_pickled_by_name(fat, monkeypatch):
    directory, name = os.path.split(fat)
    monkeypatch.chdir(directory)
    with volary.open(name, layers=["subtree=/docs"]) as vol:
        told = pickle.dumps(vol)
        monkeypatch.chdir("/")
        with pickle.loads(told) as copy:
            assert copy.read("/a.csv") == FILES["/docs/a.csv"]
    with volary.open(fat, write=True) as vol:
        with pytest.raises(TypeError):
            pickle.dumps(vol)


def test_walks_go_on_after_what_cannot_be_listed():
    class Odd(volary.ReadOnly):
        def list(self, dir):
            if dir == "bad":
                raise RuntimeError("cannot")
            return {"bad": volary.Dir(), "good": volary.File(0)} if dir == "" else {}

        def find(self, dir, name):
            return {"bad": volary.Dir(), "good": volary.File(0)}.get(name)

    with volary.volume(Odd()) as vol:
        with pytest.raises(OSError):
            list(vol.walk())
        failed = []
        found = [e.name for e in vol.walk(onerror=failed.append)]
        assert "good" in found and failed
