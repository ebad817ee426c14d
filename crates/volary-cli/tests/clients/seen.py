# In a guest, with the host's programs around it: what of a volume is seen by the kernel's own driver, and through
# each way in which it is served, has to be the same.
import hashlib, os, stat, subprocess, sys

VOLARY, NFS, SMB = sys.argv[1:]
AT = '/tmp/mnt'
SERVER = '10.0.2.2'


def xattrs(path):
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:
        return None
    return {n: os.getxattr(path, n, follow_symlinks=False) for n in names if n.startswith('user.')}


def row(path, name):
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    content = b''
    if kind == stat.S_IFREG:
        with open(path, 'rb') as file:
            content = file.read()
    elif kind == stat.S_IFLNK:
        content = os.fsencode(os.readlink(path))
    return {
        'kind': kind,
        'size': None if kind == stat.S_IFDIR else st.st_size,
        'mtime': st.st_mtime_ns // 100,
        'content': hashlib.sha256(content).hexdigest(),
        'mode': st.st_mode & 0o7777,
        'owner': (st.st_uid, st.st_gid),
        'links': st.st_nlink,
        'ino': st.st_ino,
        'xattrs': xattrs(path),
    }


def view():
    seen = {}
    for dir, dirs, files in os.walk(AT):
        for name in dirs + files:
            path = os.path.join(dir, name)
            seen[os.path.relpath(path, AT)] = row(path, name)
    return seen


def mounted(*args):
    subprocess.run(['mount', '-i', *args, AT], check=True)
    try:
        return view()
    finally:
        subprocess.run(['umount', AT], check=True)


def by_fuse(disk):
    mount = subprocess.Popen([VOLARY, 'mount', '--foreground', '-o', 'ro', disk, AT])
    while not os.path.ismount(AT):
        assert mount.poll() is None, 'volary mount ended'
    try:
        return view()
    finally:
        subprocess.run(['umount', AT], check=True)
        mount.wait()


def by_nfs(name):
    how = f'ro,addr={SERVER},port={NFS},vers=3,proto=tcp,mountport={NFS},mountproto=tcp,nolock'
    return mounted('-t', 'nfs', '-o', how, f'{SERVER}:/{name}')


def by_cifs(name):
    how = f'ro,ip={SERVER},port={SMB},username=tester,password=pass,vers=3.1.1,sign'
    return mounted('-t', 'cifs', '-o', how, f'//{SERVER}/{name}')


def same(what, base, other, fields, apart=()):
    names = base.keys() ^ other.keys()
    assert not names, (what, 'names', sorted(names)[:9])
    for name, one in base.items():
        if name in apart:
            continue
        two = other[name]
        for field in fields:
            assert one[field] == two[field], (what, name, field, one[field], two[field])
    print(f'{what}: {len(base)} the same')


CONTENT = ['kind', 'size', 'mtime', 'content']
ALL = CONTENT + ['mode', 'owner', 'links', 'ino']
os.makedirs(AT, exist_ok=True)
for disk, driver, name, fields, apart in [
    ('/dev/vda', 'ext4', 'linux', ALL + ['xattrs'], []),
    # To ntfs3 a link of ntfs-3g is a file.
    ('/dev/vdb', 'ntfs3', 'windows', CONTENT, ['link']),
]:
    kernel = mounted('-t', driver, '-o', 'ro', disk)
    fuse = by_fuse(disk)
    same(f'{name}, fuse', kernel, fuse, fields, apart)
    same(f'{name}, nfs', fuse, by_nfs(name), ALL)
    same(f'{name}, smb', fuse, by_cifs(name), CONTENT)
