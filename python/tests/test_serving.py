"""Servers and mounts."""

import os

import pytest
from conftest import FILES, need, run

import volary

FUSE = pytest.mark.skipif(not os.access("/dev/fuse", os.W_OK), reason="without FUSE")


def test_by_nfs(fat):
    with volary.serve(fat, nfs=True, squash="none", write=True) as server:
        host, port = server.nfs
        assert server.smb is None
        with volary.open(f"nfs://{host}:{port}/volume", write=True) as client:
            assert client.read("/docs/a.csv") == FILES["/docs/a.csv"]
            client.write("/new", b"by NFS")
        with pytest.raises(volary.Busy):
            volary.open(fat)
    server.close()
    with volary.open(fat) as vol:
        assert vol.read("/new") == b"by NFS"


def test_for_reading_unless_it_is_said(fat):
    with volary.serve(fat, nfs=True, squash="none") as server:
        with volary.open("nfs://%s:%d/volume" % server.nfs, write=True) as client:
            with pytest.raises(OSError):
                client.write("/new", b"1")


def test_by_smb(fat, tmp_path):
    smbclient = need("smbclient")
    with volary.serve(fat, smb=True, users={"ann": "secret"}) as server:
        host, port = server.smb
        target = tmp_path / "got"
        command = f"get docs/a.csv {target}"
        run(smbclient, f"//{host}/volume", "-p", port, "-U", "ann%secret", "-c", command)
        assert target.read_bytes() == FILES["/docs/a.csv"]
        with pytest.raises(Exception):
            run(smbclient, f"//{host}/volume", "-p", port, "-U", "ann%wrong", "-c", "ls")


def test_what_makes_no_sense_is_refused(fat):
    for how in (
        dict(),
        dict(smb=True),
        dict(nfs="nowhere"),
        dict(nfs=True, squash="some"),
        dict(nfs=True, clients=["x"]),
        dict(nfs=True, name="a/b"),
    ):
        with pytest.raises((ValueError, OSError)):
            volary.serve(fat, **how)
    with volary.open(fat) as vol:
        with pytest.raises(TypeError):
            volary.serve(vol, nfs=True, kind="fat32")
        with pytest.raises(ValueError):
            volary.serve(vol, nfs=True, write=True)
        with pytest.raises(OSError):
            volary.mount(vol, "/nowhere/at/all")
    # Nothing of these holds the image.
    with volary.open(fat, write=True):
        pass


@FUSE
def test_mounted(fat, tmp_path):
    place = tmp_path / "mnt"
    place.mkdir()
    with volary.mount(fat, place, write=True) as mounted:
        assert os.path.samefile(mounted.path, place)
        assert (place / "docs/a.csv").read_bytes() == FILES["/docs/a.csv"]
        (place / "new").write_bytes(b"by FUSE")
        file = open(place / "new", "rb")
        with pytest.raises(volary.Busy):
            mounted.unmount()
        file.close()
    assert not os.path.ismount(place)
    with volary.open(fat) as vol:
        assert vol.read("/new") == b"by FUSE"
    with volary.mount(fat, place):
        with pytest.raises(OSError):
            (place / "x").write_bytes(b"1")
    with pytest.raises(OSError):
        volary.mount(fat, place, options="no-such-option")


@FUSE
def test_served_mounted_and_used_at_once(fat, tmp_path):
    with volary.open(fat, write=True) as vol:
        mounted = vol.mount(tmp_path)
        server = vol.serve(nfs=True, squash="none")
        vol.write("/w", b"by the volume")
        assert (tmp_path / "w").read_bytes() == b"by the volume"
        with volary.open("nfs://%s:%d/volume" % server.nfs, write=True) as client:
            client.write("/n", b"by NFS")
        assert vol.read("/n") == b"by NFS"
    # The volume ended what was on it.
    assert not os.path.ismount(mounted.path)
    mounted.close()
    server.close()
