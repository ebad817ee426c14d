"""The conformance suite: a correct driver passes, and mistakes are caught."""

import os

import pytest

import volary


class Folder(volary.ReadOnly):
    """A directory of the host."""

    def __init__(self, top):
        self.top = os.fsencode(top)

    def place(self, path):
        return os.path.join(self.top, os.fsencode(path))

    def node(self, place):
        told = os.lstat(place)
        if os.path.islink(place):
            return volary.Symlink(os.readlink(place))
        if os.path.isdir(place):
            return volary.Dir()
        return volary.File(told.st_size)

    def list(self, dir):
        where = self.place(dir)
        return {os.fsdecode(n): self.node(os.path.join(where, n)) for n in os.listdir(where)}

    def find(self, dir, name):
        place = os.path.join(self.place(dir), os.fsencode(name))
        return self.node(place) if os.path.lexists(place) else None

    def read(self, file, offset, length):
        with open(self.place(file), "rb") as opened:
            opened.seek(offset)
            return opened.read(length)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    tree = tmp_path_factory.mktemp("reference")
    volary.write_reference(tree)
    return tree


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A tree that is quickly read."""
    tree = tmp_path_factory.mktemp("small")
    for number in range(20):
        (tree / f"file{number}").write_bytes(b"%d" % number)
    for size in (0, 511, 4097, 10_000):
        (tree / f"size{size}").write_bytes(os.urandom(size))
    (tree / "dir/in").mkdir(parents=True)
    (tree / "dir/in/file").write_bytes(b"1")
    (tree / "link").symlink_to("dir/in/file")
    return tree


# A thousand entries in buffers of every size, each asked for in Python.
@pytest.mark.timeout(900)
def test_a_correct_driver_passes(reference, small):
    report = volary.conform(lambda: Folder(reference), tree=reference, limit=300)
    assert report and len(report.passed) > 10
    assert volary.conform(lambda: Folder(small))


# Under four layers and through three servers, each of which has every case to itself.
@pytest.mark.timeout(1800)
def test_a_correct_driver_passes_everywhere(small):
    report = volary.conform(lambda: Folder(small), tree=small, limit=300, everywhere=True)
    for way in ("plain", "under", "through nfs", "through smb"):
        assert sum(way in case for case in report.passed) > 10, way
    if os.access("/dev/fuse", os.W_OK):
        assert sum("through fuse" in case for case in report.passed) > 10


class NoOffset(Folder):
    def read(self, file, offset, length):
        return (super().read(file, 0, offset + length) + bytes(length))[:length]


class CutsLinks(Folder):
    def node(self, place):
        node = super().node(place)
        return volary.Symlink(node.target[:3]) if node.kind == "symlink" else node


class LosesOne(Folder):
    def list(self, dir):
        found = super().list(dir)
        if len(found) > 10:
            del found[sorted(found)[5]]
        return found


class ShortFiles(Folder):
    def node(self, place):
        node = super().node(place)
        if node.kind == "file" and node.size > 5000:
            node.size -= 1
        return node


class FindsAnything(Folder):
    def find(self, dir, name):
        return super().find(dir, name) or volary.File(0)


class Raises(Folder):
    def read(self, file, offset, length):
        if offset > 4096:
            raise RuntimeError("no bytes today")
        return super().read(file, offset, length)


@pytest.mark.parametrize(
    "wrong", [NoOffset, CutsLinks, LosesOne, ShortFiles, FindsAnything, Raises]
)
def test_mistakes_are_caught(small, wrong):
    report = volary.conform(lambda: wrong(small), tree=small, check=False)
    assert not report and all("the contract" in str(failure) for failure in report.failed)


def test_what_cannot_be_made_is_told():
    def make():
        raise ValueError("no driver today")

    with pytest.raises((AssertionError, OSError), match="no driver today"):
        volary.conform(make)


def one_that_reads(small):
    return volary.conform(lambda: NoOffset(small), tree=small, check=False).failed[0].case


def test_one_case_alone(small):
    report = volary.conform(
        lambda: Folder(small), tree=small, only="statfs_makes_sense"
    )
    assert report.passed == ["statfs_makes_sense"]
    with pytest.raises(AssertionError, match="the contract"):
        volary.conform(lambda: NoOffset(small), tree=small, only=one_that_reads(small))
    with pytest.raises(ValueError):
        volary.conform(lambda: Folder(small), tree=small, only="no_such_case")
    with pytest.raises(ValueError):
        volary.conform(lambda: Folder(small), compare=["colours"])
