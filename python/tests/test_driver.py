"""Drivers in Python."""

import gc
import os
import subprocess
import sys
import threading

import pytest

import volary

TEXTS = {"one.txt": b"1", "sub/two.txt": b"22" * 40_000, "sub/er/three": b"333"}


class Words(volary.ReadOnly):
    """Texts in a dictionary."""

    def __init__(self):
        self.calls = set()

    def list(self, dir):
        self.calls.add(threading.get_ident())
        found = {}
        for path, text in TEXTS.items():
            if dir and not path.startswith(dir + "/"):
                continue
            name, slash, _ = path[len(dir) + 1 if dir else 0 :].partition("/")
            found[name] = volary.Dir() if slash else volary.File(len(text), mtime=1.5, mode=0o600)
        return found

    def read(self, file, offset, length):
        self.calls.add(threading.get_ident())
        return memoryview(TEXTS[file])[offset : offset + length]


def test_a_driver_is_a_volume():
    with volary.volume(Words()) as vol:
        assert {e.path: vol.read(e.path) for e in vol.walk() if e.is_file} == {
            f"/{path}": text for path, text in TEXTS.items()
        }
        told = vol.stat("/one.txt")
        assert (told.mtime, told.mode & 0o7777, told.size) == (1.5, 0o600, 1)
        assert vol.read_at("/sub/two.txt", 79_999, 10) == b"2"
        assert not vol.writable
        with pytest.raises(OSError):
            vol.write("/x", b"")
        with pytest.raises(FileNotFoundError):
            vol.read("/sub/none")
        assert {p: d for p, _, d in vol.bulk()} == {f"/{p}": t for p, t in TEXTS.items()}
        assert vol.cat_ranges(["/one.txt", "sub/two.txt"], [0, 5], [1, 7]) == [b"1", b"22"]
    with volary.volume(Words(), layers=["subtree=/sub"]) as vol:
        assert vol.read("er/three") == b"333"


def test_what_a_driver_raises_comes_out_with_its_words():
    class Bad(volary.ReadOnly):
        def list(self, dir):
            if dir:
                raise ValueError("no list today")
            return [
                ("raises", volary.File(3)),
                ("short", volary.File(3)),
                ("long", volary.File(3)),
                ("text", volary.File(3)),
                ("gone", volary.File(3)),
                ("dir", volary.Dir()),
                ("..", volary.Dir()),
                ("a/b", volary.File(1)),
            ]

        def find(self, dir, name):
            return dict(self.list("")).get(name) if not dir else None

        def read(self, file, offset, length):
            if file == "raises":
                raise ZeroDivisionError("by nothing")
            if file == "gone":
                raise FileNotFoundError(file)
            return {"short": b"1", "long": b"12345", "text": "123"}[file]

    with volary.volume(Bad()) as vol:
        with pytest.raises(volary.Error, match="ZeroDivisionError: by nothing") as e:
            vol.read("raises")
        assert isinstance(e.value.__cause__, ZeroDivisionError) and e.value.kind == "Io"
        for name in ("short", "long", "text"):
            with pytest.raises(volary.Error) as e:
                vol.read(name)
            assert e.value.kind == "Io"
        with pytest.raises(OSError):
            vol.read("gone")
        with pytest.raises(OSError, match="no list today"):
            vol.list("dir")

    class Wrong(volary.ReadOnly):
        def list(self, dir):
            return {"a": "no entry"}

    with volary.volume(Wrong()) as vol, pytest.raises(OSError, match="expected volary.File"):
        vol.read("a")
    with volary.volume(volary.ReadOnly()) as vol, pytest.raises(OSError, match="NotImplemented"):
        vol.list()
    for node in (volary.File(-1), volary.File(1 << 70), volary.File("3")):

        class Lies(volary.ReadOnly):
            def list(self, dir):
                return {"a": node}

        with volary.volume(Lies()) as vol, pytest.raises(OSError):
            vol.read("a")


def test_an_interrupt_in_a_driver_is_one():
    class Interrupting(volary.ReadOnly):
        def list(self, dir):
            raise KeyboardInterrupt

    with volary.volume(Interrupting()) as vol:
        with pytest.raises(KeyboardInterrupt):
            vol.list()
        # It was told, and is not told again.
        with pytest.raises(ValueError):
            vol.open("/a", "q")


def test_a_driver_may_use_another_volume(fat):
    class Upper(volary.ReadOnly):
        def __init__(self, vol):
            self.vol = vol

        def list(self, dir):
            return {
                e.name.upper(): volary.Dir() if e.is_dir else volary.File(e.stat.size)
                for e in self.vol.list(dir.lower())
            }

        def read(self, file, offset, length):
            return self.vol.read_at(file.lower(), offset, length).upper()

    with volary.open(fat) as below, volary.volume(Upper(below)) as vol:
        assert vol.read("/DOCS/A.CSV") == below.read("/docs/a.csv").upper()
        below.close()
        with pytest.raises(OSError, match="closed|gone"):
            vol.read("/DOCS/A.CSV")


def test_served_while_the_main_thread_waits(tmp_path):
    driver = Words()
    with volary.serve(volary.volume(driver), nfs=True, squash="none") as server:
        host, port = server.nfs
        with volary.open(f"nfs://{host}:{port}/volume") as client:
            assert client.read("/sub/two.txt") == TEXTS["sub/two.txt"]
        server.volume.close()
    assert driver.calls - {threading.get_ident()}, "threads of the server have asked it"


@pytest.mark.skipif(not os.access("/dev/fuse", os.W_OK), reason="without FUSE")
def test_mounted_and_read_by_others(tmp_path):
    with volary.volume(Words()) as vol, vol.mount(tmp_path) as mounted:
        read = subprocess.run(
            ["cat", f"{tmp_path}/sub/two.txt"], capture_output=True, timeout=60, check=True
        )
        assert read.stdout == TEXTS["sub/two.txt"]
        # By this process too: the lock is free while Python waits for the kernel.
        with open(f"{mounted.path}/sub/er/three", "rb") as file:
            assert file.read() == b"333"
        assert sorted(os.listdir(tmp_path)) == ["one.txt", "sub"]
    assert os.listdir(tmp_path) == []


def test_a_driver_is_let_go_of():
    import weakref

    driver = Words()
    gone = weakref.ref(driver)
    vol = volary.volume(driver)
    vol.list()
    del driver
    assert gone() is not None
    vol.close()
    gc.collect()
    assert gone() is None


def test_python_ends_while_a_driver_is_served(tmp_path):
    script = """
import volary, sys
class One(volary.ReadOnly):
    def list(self, dir):
        return {"a": volary.File(1)} if not dir else {}
    def read(self, file, offset, length):
        return b"1"
server = volary.serve(volary.volume(One()), nfs=True)
client = volary.open("nfs://%s:%d/volume" % server.nfs)
print(client.read("/a"))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "b'1'\n", "")
