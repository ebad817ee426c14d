"""Open files, beside those of Python."""

import io
import os

import pytest

MODES = ["r", "w", "x", "a", "r+", "w+", "a+", "x+"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("there", [True, False])
def test_modes_are_those_of_the_built_in(vol, tmp_path, mode, there):
    host = tmp_path / "f"
    if there:
        host.write_bytes(b"0123456789")
        vol.write("/f", b"0123456789")

    def use(opened):
        told = []
        with opened() as file:
            told.append((file.readable(), file.writable(), file.seekable(), file.tell()))
            for doing in (
                lambda: file.read(3),
                lambda: file.write(b"ab"),
                lambda: file.seek(1),
                lambda: file.read(),
                lambda: file.seek(-2, io.SEEK_END),
                lambda: file.write(b"XYZ"),
                lambda: file.tell(),
                lambda: file.flush(),
                lambda: file.truncate(6),
                lambda: file.seek(0),
                lambda: file.readinto(bytearray(4)),
            ):
                try:
                    told.append(doing())
                except io.UnsupportedOperation:
                    told.append("unsupported")
        return told

    try:
        ours = use(lambda: vol.open("/f", mode + "b"))
    except OSError as e:
        with pytest.raises(type(e).__mro__[2] if isinstance(e, FileNotFoundError) else FileExistsError):
            use(lambda: open(host, mode + "b"))
        return
    assert ours == use(lambda: open(host, mode + "b"))
    assert vol.read("/f") == host.read_bytes()


def test_text_and_buffers(vol):
    with vol.open("/t", "w", encoding="utf-16", newline="\r\n") as file:
        print("grün", "blau", sep="\n", file=file)
    with vol.open("/t", encoding="utf-16") as file:
        assert [line.rstrip("\n") for line in file] == ["grün", "blau"]
    assert vol.read("/t") == "grün\r\nblau\r\n".encode("utf-16")
    with vol.open("/u", "wb", buffering=0) as raw:
        raw.write(memoryview(b"0123")[1:3])
        assert vol.read("/u") == b"12"
        raw.sync()
    for mode in ("rw", "", "bt", "z", "rbt"):
        with pytest.raises(ValueError):
            vol.open("/t", mode)
    with pytest.raises(ValueError):
        vol.open("/t", "rb", encoding="utf-8")


def test_what_is_closed_is_closed(vol):
    file = vol.open("/f", "wb")
    file.close()
    file.close()
    with pytest.raises(ValueError):
        file.write(b"1")
    raw = vol.open("/f", "rb", buffering=0)
    raw.close()
    with pytest.raises(ValueError):
        raw.read(1)


def test_a_file_outlives_its_name(vol):
    vol.write("/f", b"text")
    with vol.open("/f", "rb") as file:
        vol.remove("/f")
        assert file.read() == b"text"


def test_appends_go_to_the_end_as_it_is(vol):
    with vol.open("/log", "ab", buffering=0) as one, vol.open("/log", "ab", buffering=0) as two:
        for number in range(5):
            one.write(b"1%d" % number)
            two.write(b"2%d" % number)
    assert vol.read("/log") == b"10201121122213231424"


def test_large_reads_take_no_memory_past_the_end(vol):
    vol.write("/f", os.urandom(1000))
    with vol.open("/f", "rb", buffering=0) as file:
        assert len(file.read(1 << 40)) == 1000
    assert len(vol.read_at("/f", 10, 1 << 60)) == 990
