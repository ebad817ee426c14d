"""Images that others have made, and some of ours."""

import shutil
import subprocess

import pytest

import volary

#: What the images of others hold.
FILES = {
    "/docs/a.csv": b"name,count\nann,1\nbob,22\n",
    "/docs/empty": b"",
    "/docs/deep/er/b.bin": bytes(range(256)) * 300,
    "/top.txt": b"top\n",
}


def run(*command, **how):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, **how)


def need(program):
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """The files in a directory of the host."""
    top = tmp_path_factory.mktemp("tree")
    for path, data in FILES.items():
        place = top / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return top


@pytest.fixture(scope="session")
def mtools_fat(tmp_path_factory, tree):
    """A FAT image by mkfs.fat and mtools."""
    image = tmp_path_factory.mktemp("fat") / "fat.img"
    run(need("mkfs.fat"), "-C", "-F", "16", image, 20 << 10)
    run(need("mcopy"), "-s", "-i", image, *tree.iterdir(), "::/")
    return str(image)


@pytest.fixture(scope="session")
def makefs_ffs(tmp_path_factory, tree):
    """An FFS image by makefs."""
    image = tmp_path_factory.mktemp("ffs") / "ffs.img"
    run(need("makefs"), "-t", "ffs", "-o", "version=2", "-s", "16m", image, tree)
    return str(image)


@pytest.fixture(scope="session")
def mke2fs_ext4(tmp_path_factory, tree):
    """An ext4 image by mke2fs."""
    image = tmp_path_factory.mktemp("ext4") / "ext4.img"
    run(need("mke2fs"), "-q", "-t", "ext4", "-d", tree, image, "16m")
    return str(image)


@pytest.fixture(params=["fat32", "ffs2"])
def image(request, tmp_path):
    """An empty volume."""
    path = tmp_path / "disk.img"
    volary.mkfs(path, request.param, "64M")
    return str(path)


@pytest.fixture
def vol(image):
    """An empty volume, open for changes."""
    with volary.open(image, write=True) as vol:
        yield vol


@pytest.fixture
def fat(tmp_path):
    """The name of an image with a few files."""
    path = tmp_path / "few.img"
    volary.mkfs(path, "fat32", "64M")
    with volary.open(path, write=True) as vol:
        for name, data in FILES.items():
            vol.mkdir(name.rsplit("/", 1)[0], parents=True, exist_ok=True)
            vol.write(name, data)
    return str(path)
