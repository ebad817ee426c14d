"""What users could lose: by not closing, by a fork, by an interrupt, by another process."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import volary


def python(script, *arguments, **how):
    return subprocess.run(
        [sys.executable, "-X", "dev", "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        **how,
    )


def content(image, path="/f"):
    assert volary.check(image).clean
    with volary.open(image) as vol:
        return vol.read(path)


def test_a_file_that_is_never_closed(image):
    with volary.open(image, write=True) as vol:
        file = vol.open("/f", "w")
        file.write("kept in a buffer")
    assert file.closed
    assert content(image) == b"kept in a buffer"


def test_neither_file_nor_volume_closed_when_python_ends(image):
    script = """
import sys, volary
vol = volary.open(sys.argv[1], write=True)
file = vol.open("/f", "w")
file.write("kept")
"""
    ended = python(script, image)
    assert ended.returncode == 0, ended.stderr
    assert content(image) == b"kept"


def test_python_ends_with_an_exception(image):
    script = """
import sys, volary
with volary.open(sys.argv[1], write=True) as vol:
    with vol.open("/f", "w") as file:
        file.write("kept")
        raise RuntimeError("in the middle")
"""
    ended = python(script, image)
    assert ended.returncode == 1 and "in the middle" in ended.stderr
    assert content(image) == b"kept"


def test_a_volume_let_go_of_warns_and_is_closed(image):
    with pytest.warns(ResourceWarning, match="unclosed volume"):
        vol = volary.open(image, write=True)
        vol.write("/f", b"kept")
        del vol
    assert content(image) == b"kept"


def test_a_killed_process_loses_what_was_not_synced_and_nothing_else(image):
    script = """
import os, signal, sys, volary
vol = volary.open(sys.argv[1], write=True)
vol.write("/f", b"synced")
vol.sync()
vol.write("/g", b"perhaps")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert python(script, image).returncode == -signal.SIGKILL
    volary.check(image, repair=True)
    assert content(image) == b"synced"


def test_the_image_is_locked(image):
    with volary.open(image, write=True):
        with pytest.raises(volary.Busy, match="this process"):
            volary.open(image)
        script = "import sys, volary; volary.open(sys.argv[1])"
        ended = python(script, image)
        assert ended.returncode == 1 and "volary._errors.Busy" in ended.stderr
        with pytest.raises(volary.Busy):
            volary.check(image, repair=True)
    with volary.open(image), volary.open(image):
        with pytest.raises(volary.Busy):
            volary.open(image, write=True)


def in_fork(work):
    """Returns what a fork says."""
    reads, writes = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            told = repr(work())
        except BaseException as e:
            told = f"{type(e).__name__}: {e}"
        os.write(writes, told.encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as file:
        told = file.read().decode()
    os.waitpid(process, 0)
    return told


def test_a_fork_cannot_use_what_was_open(image):
    with volary.open(image, write=True) as vol:
        vol.write("/f", b"mine")
        file = vol.open("/f", "rb", buffering=0)
        files = vol.bulk()
        walk = vol.walk()
        for work in (
            lambda: vol.read("/f"),
            lambda: vol.write("/f", b"theirs"),
            lambda: file.read(),
            lambda: next(files),
            lambda: next(walk),
            lambda: vol.sync(),
        ):
            assert "forked" in in_fork(work)
        # The fork ends nothing of ours.
        assert in_fork(lambda: (file.close(), files.close(), vol.close(), vol.closed)[-1]) == "True"
        assert file.read() == b"mine"
        assert len(list(files)) == 1
    assert content(image) == b"mine"


def test_a_fork_that_ends_as_python_does_writes_nothing(image):
    script = """
import os, sys, volary
vol = volary.open(sys.argv[1], write=True)
vol.write("/f", b"before")
if os.fork() == 0:
    # Its copy of the volume is let go of, as all that it has.
    sys.exit(0)
os.wait()
vol.write("/f", b"after")
vol.close()
"""
    ended = python(script, image)
    assert ended.returncode == 0, ended.stderr
    assert content(image) == b"after"


def test_an_image_is_free_while_a_fork_lives_on(image):
    with volary.open(image, write=True) as vol:
        vol.write("/f", b"1")
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with volary.open(image, write=True) as vol:
            assert vol.read("/f") == b"1"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_fork_opens_the_image_itself(fat):
    with volary.open(fat) as vol:
        assert vol.read("/top.txt") == b"top\n"

        def work():
            with volary.open(fat) as mine:
                return mine.read("/top.txt"), len(list(volary.bulk(mine)))

        assert in_fork(work) == "(b'top\\n', 4)"


SLOW = """
import signal, time, volary

# Who runs the tests in the background may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Slow(volary.ReadOnly):
    def list(self, dir):
        return {str(i): volary.File(1) for i in range(100000)} if not dir else {}
    def find(self, dir, name):
        return volary.File(1)
    def read(self, file, offset, length):
        time.sleep(0.05)
        return b"1"

vol = volary.volume(Slow())
"""


@pytest.mark.parametrize(
    "work",
    [
        "for one in vol.bulk(): pass",
        "for one in vol.walk(): vol.read(one.path)",
        "list(vol.bulk(shuffle=1))",
    ],
)
def test_an_interrupt_ends_a_long_run(work):
    script = SLOW + f"""
print("begins", flush=True)
try:
    {work}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "begins\n"
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert out == "interrupted\n", err
    assert process.returncode == 0


def test_closed_while_others_read(image):
    with volary.open(image, write=True) as vol:
        for number in range(50):
            vol.write(f"/{number}", bytes(10_000))
        ended = []

        def read():
            try:
                while True:
                    for number in range(50):
                        vol.read(f"/{number}")
            except volary.Error as e:
                ended.append(e.kind)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        vol.close()
        for thread in threads:
            thread.join(60)
        assert ended == ["Stale"] * 4
    with volary.open(image, write=True):
        pass


def test_a_full_volume_says_so_and_keeps_what_was_there(tmp_path):
    image = tmp_path / "small.img"
    volary.mkfs(image, "fat16", "8M")
    with volary.open(image, write=True) as vol:
        vol.write("/f", b"old")
        with pytest.raises(OSError) as e:
            vol.write("/f", bytes(16 << 20))
        assert e.value.kind == "NoSpace"
        assert vol.read("/f") == b"old"
        with pytest.raises(OSError):
            with vol.open("/g", "wb") as file:
                for _ in range(100):
                    file.write(bytes(1 << 20))
    assert content(image) == b"old"


def test_what_a_close_could_not_write_is_told(tmp_path):
    image = tmp_path / "small.img"
    volary.mkfs(image, "fat16", "8M")
    vol = volary.open(image, write=True)
    file = vol.open("/g", "wb", buffering=64 << 20)
    file.write(bytes(20 << 20))
    with pytest.raises(OSError):
        vol.close()
    assert vol.closed
    assert volary.check(image).clean
