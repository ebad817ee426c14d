//! Quotas of an FFS volume through each server, as clients see them, and through the layers that
//! know users by other numbers or bound them themselves.

mod servers;

use servers::{clock, serve_nfs, serve_smb_as};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use tempfile::TempDir;
use volary::block::MemDevice;
use volary::fuse::{MountOptions, Stop};
use volary::layers::{IdMap, Quota as Bounds};
use volary::{
    Create, Cred, Fs, Kind, Mode, Quota, QuotaLimits, QuotaOf, QuotaReport, Session, SetAttr,
    SetQuota, Volume, VolumeOptions,
};
use volary_testkit::nfs::client::{Client, How, Set};
use volary_testkit::smb::{self, access, disposition};
use volary_testkit::volumes::{Shape, attach, clean};

const ANN: u32 = 1000;
const STAFF: u32 = 50;
/// What Ann may take: bytes, no more than without indirect blocks, and nodes.
const BYTES: usize = 32 << 10;
const NODES: u64 = 3;

/// The kinds of quota files.
const KINDS: [(&str, &str); 3] = [("ffs1", "quota"), ("ffs2", "quota"), ("ffs1", "quota,old")];

struct Limited {
    dev: Arc<MemDevice>,
    volume: Arc<Volume>,
    shape: Shape,
}

fn ffs(kind: &'static str, how: &'static str) -> Shape {
    let all = volary::formats().iter();
    let format = all.copied().find(|f| f.name() == "ffs").expect("ffs");
    Shape::new(format, kind, 16 << 20).made(how)
}

fn served(fs: Fs) -> Arc<Volume> {
    let how = VolumeOptions {
        trust: true,
        ..VolumeOptions::new("test", clock)
    };
    Volume::new(fs, how)
}

fn limits(id: u32, bytes: u64, nodes: u64) -> SetQuota {
    let hard = |n| QuotaLimits {
        soft: None,
        hard: Some(n),
    };
    SetQuota::Limits {
        id,
        bytes: Some(hard(bytes)),
        nodes: Some(hard(nodes)),
    }
}

impl Limited {
    /// Returns a volume where anybody may write, and Ann not much.
    fn new((kind, how): (&'static str, &'static str)) -> Self {
        let shape = ffs(kind, how);
        let dev = shape.device();
        let fs = attach(shape.format(), dev.clone(), "").expect("attach");
        let volume = served(fs);
        let limited = Self { dev, volume, shape };
        let root = limited.root();
        let all = SetAttr::mode(0o777);
        root.setattr(root.root(), &all).expect("chmod");
        root.set_quota(QuotaOf::Users, &limits(ANN, BYTES as u64, NODES))
            .expect("limits");
        limited
    }

    fn root(&self) -> Session {
        self.volume.session(Cred::root())
    }

    fn used(&self) -> (u64, u64) {
        let report = self.root().quota(QuotaOf::Users, ANN).expect("quota");
        let quota = report.quota.filter(|quota| quota.id == ANN);
        quota.map_or((0, 0), |quota| (quota.bytes.used, quota.nodes.used))
    }

    /// Detaches it, if the server did not; nothing was taken but what was counted.
    fn end(self) {
        let Self { dev, volume, shape } = self;
        _ = volume.detach();
        drop(volume);
        clean(shape.format(), dev, "").unwrap_or_else(|e| panic!("{}: {e}", shape.name()));
    }
}

#[test]
fn an_nfs_client_is_told_of_its_quota() {
    const DQUOT: u32 = 69;
    const FIFO: u32 = 7;
    for kind in KINDS {
        let limited = Limited::new(kind);
        let server = serve_nfs(&limited.volume);
        let mut root = Client::new(server.addresses()[0]);
        let mut ann = Client::new(server.addresses()[0]).of_user(ANN, STAFF);
        let top = ann.root();
        let make = |client: &mut Client, name: &[u8]| {
            let how = How::Guarded(Set::mode(0o666));
            client.create(&top, name, how).map(|made| made.0)
        };
        let file = make(&mut ann, b"a").expect("the first");
        for stable in [0, 2] {
            ann.write(&file, 0, &[1; BYTES], stable).expect("all");
            let more = ann.write(&file, BYTES as u64, &[1; 4096], stable);
            assert_eq!(more.expect_err("more"), DQUOT);
        }
        ann.commit(&file).expect("commit");
        let longer = ann.setattr(&file, &Set::size(1 << 20), None);
        assert_eq!(longer.expect_err("longer"), DQUOT);
        make(&mut ann, b"b").expect("the second");
        ann.mknod(&top, b"c", FIFO, &Set::mode(0o666), 0)
            .expect("the third");
        assert_eq!(make(&mut ann, b"d").expect_err("the fourth"), DQUOT);
        let dir = ann.mkdir(&top, b"d", &Set::mode(0o755));
        assert_eq!(dir.expect_err("a directory"), DQUOT);
        let link = ann.symlink(&top, b"d", b"a");
        assert_eq!(link.expect_err("a symlink"), DQUOT);
        // Others are not bounded.
        let theirs = make(&mut root, b"d").expect("root's");
        root.write(&theirs, 0, &[1; 2 * BYTES], 2).expect("root's");
        let mine = Set {
            uid: Some(ANN),
            ..Set::default()
        };
        ann.remove(&top, b"b").expect("room again");
        root.setattr(&theirs, &mine, None).expect("root may give");
        let big = limited.used();
        assert_eq!((big.0 > BYTES as u64, big.1), (true, NODES));
        ann.remove(&top, b"d").expect("room again");
        assert_eq!(limited.used(), (BYTES as u64, NODES - 1));
        drop(server);
        limited.end();
    }
}

#[test]
fn an_smb_client_is_told_that_the_disk_is_full() {
    const DISK_FULL: u32 = 0xc000_007f;
    for kind in KINDS {
        let limited = Limited::new(kind);
        let server = serve_smb_as(&limited.volume, Cred::new(ANN, STAFF));
        let (client, _) = smb::Client::connect(server.address, "tester", "pass", "test", [7; 16])
            .expect("a client");
        let make = |path: &str| {
            let how = smb::How {
                disposition: disposition::CREATE,
                ..smb::How::open(access::READ | access::WRITE)
            };
            client.open(path, &how).map(|opened| opened.open)
        };
        let full = smb::Fail::Status(DISK_FULL);
        let file = make("a").expect("the first");
        client.write(file, 0, &[1; BYTES]).expect("all");
        let more = client.write(file, BYTES as u64, &[1; 4096]);
        assert_eq!(more.expect_err("more"), full);
        let longer = client.set_size(file, 1 << 20);
        assert_eq!(longer.expect_err("longer"), full);
        let others = ["b", "c"].map(|path| make(path).expect("room"));
        assert_eq!(make("d").expect_err("the fourth"), full);
        assert_eq!(client.make_dir("d").expect_err("a directory"), full);
        for open in others.into_iter().chain([file]) {
            client.close(open).expect("close");
        }
        assert_eq!(limited.used(), (BYTES as u64, NODES));
        drop(server);
        limited.end();
    }
}

fn can_mount() -> bool {
    let able = Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root();
    if !able {
        println!("SKIPPED: no /dev/fuse, or no right to mount");
    }
    able
}

/// Returns what becomes of a line of shell that Ann runs in a directory.
fn by_ann(dir: &Path, line: &str) -> Output {
    let mut shell = Command::new("sh");
    let shell = shell
        .arg("-c")
        .arg(line)
        .current_dir(dir)
        .env("LC_ALL", "C");
    shell.uid(ANN).gid(STAFF).output().expect("sh")
}

/// Also of what the kernel keeps, and writes on nobody's behalf.
#[test]
fn programs_on_a_mount_are_told_of_their_quota() {
    if !can_mount() {
        return;
    }
    for (kind, write_back) in KINDS.into_iter().zip([false, true, false]) {
        let limited = Limited::new(kind);
        let dir = TempDir::new().expect("a directory");
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(dir.path(), all).expect("chmod");
        let options = MountOptions {
            allow_other: true,
            write_back: Some(write_back),
            ..MountOptions::default()
        };
        let volume = Arc::clone(&limited.volume);
        let mounted = volary::fuse::serve(volume, dir.path(), &options, Stop::Call);
        let mounted = mounted.expect("a mount");
        let said = |line: &str| {
            let out = by_ann(dir.path(), line);
            let words = String::from_utf8_lossy(&out.stderr).into_owned();
            (out.status.success(), words)
        };
        let fits = "dd if=/dev/zero of=a bs=4096 count=8 conv=fsync";
        let (done, words) = said(fits);
        assert!(done, "{words}");
        let past = "dd if=/dev/zero of=a bs=4096 count=12 conv=fsync,notrunc";
        let (done, words) = said(past);
        assert!(!done && words.contains("Disk quota exceeded"), "{words}");
        let (done, words) = said("touch b && mkfifo c");
        assert!(done, "{words}");
        for line in ["touch d", "mkdir d", "ln -s a d", "mkfifo d"] {
            let (done, words) = said(line);
            assert!(
                !done && words.contains("Disk quota exceeded"),
                "{line}: {words}"
            );
        }
        assert_eq!(limited.used(), (BYTES as u64, NODES));
        mounted.unmount().expect("unmount");
        limited.end();
    }
}

fn ids(of: QuotaOf, fs: &Session) -> Vec<(u32, Option<u64>)> {
    let (mut from, mut all) = (0, Vec::new());
    let next = |from| -> QuotaReport { fs.quota(of, from).expect("quota") };
    while let Some(quota) = next(from).quota {
        all.push((quota.id, quota.nodes.limits.hard));
        from = quota.id + 1;
    }
    all
}

/// A file of somebody's.
fn make(fs: &Session, name: &str) -> volary::Result<()> {
    let set = SetAttr::mode(0o644);
    let (_, open) = fs.create(fs.root(), name.as_bytes(), Create::New, Mode::Write, &set)?;
    fs.close(open)
}

#[test]
fn quotas_are_known_by_the_ids_above_a_map() {
    let shape = ffs("ffs2", "quota");
    let dev = shape.device();
    let below = attach(shape.format(), dev.clone(), "").expect("attach");
    let rules = "u:1000:5:3,u:20:1000,g:7:50";
    let map = IdMap::parse(below.clone(), rules).expect("rules");
    let (volume, plain) = (served(Arc::new(map)), served(below));
    let (root, under) = (volume.session(Cred::root()), plain.session(Cred::root()));
    let all = SetAttr::mode(0o777);
    root.setattr(root.root(), &all).expect("chmod");
    for (id, nodes) in [(1001, 2), (20, 9), (300, 4), (1002, 3)] {
        root.set_quota(QuotaOf::Users, &limits(id, 1 << 20, nodes))
            .expect("limits");
    }
    root.set_quota(QuotaOf::Groups, &limits(7, 1 << 20, 5))
        .expect("limits");
    let (users, groups) = (QuotaOf::Users, QuotaOf::Groups);
    let found = ids(users, &root);
    assert_eq!(
        found[1..],
        [
            (20, Some(9)),
            (300, Some(4)),
            (1001, Some(2)),
            (1002, Some(3))
        ]
    );
    let found = ids(users, &under);
    assert_eq!(
        found[1..],
        [(6, Some(2)), (7, Some(3)), (300, Some(4)), (1000, Some(9))]
    );
    assert_eq!(ids(groups, &root)[1..], [(7, Some(5))]);
    assert_eq!(ids(groups, &under)[1..], [(50, Some(5))]);
    // Those below that are somebody else above, and those above that are nobody below.
    under
        .set_quota(users, &limits(1001, 1 << 20, 1))
        .expect("limits");
    assert_eq!(ids(users, &root).len(), 5, "1001 is another above");
    let taken = root.set_quota(users, &limits(5, 1 << 20, 1));
    assert_eq!(taken.expect_err("5 is 1000 above").kind(), Kind::Invalid);
    // It is enforced, and told by the id above.
    let ann = volume.session(Cred::new(1001, 7));
    make(&ann, "one").expect("the first");
    make(&ann, "two").expect("the second");
    assert_eq!(make(&ann, "three").expect_err("more").kind(), Kind::Quota);
    let one = root.quota(users, 1001).expect("quota").quota;
    let one = one.map(|Quota { id, nodes, .. }| (id, nodes.used));
    assert_eq!(one, Some((1001, 2)));
    let grace = root.quota(users, 5000).expect("none behind");
    assert_eq!((grace.quota, grace.grace.bytes), (None, 7 * 24 * 60 * 60));
    root.set_quota(users, &SetQuota::Off).expect("off");
    assert_eq!(
        root.quota(users, 0).expect_err("off").kind(),
        Kind::NotFound
    );
}

#[test]
fn one_id_that_all_others_are_has_one_quota() {
    let shape = ffs("ffs2", "quota");
    let below = attach(shape.format(), shape.device(), "").expect("attach");
    let plain = served(below.clone()).session(Cred::root());
    let users = QuotaOf::Users;
    plain
        .set_quota(users, &limits(1001, 1 << 20, 1))
        .expect("limits");
    let map = IdMap::parse(below, "u:0:0,squash:99:98").expect("rules");
    let squashed = served(Arc::new(map)).session(Cred::root());
    squashed
        .set_quota(users, &limits(99, 1 << 20, 8))
        .expect("limits");
    let other = squashed.set_quota(users, &limits(1001, 1 << 20, 8));
    assert_eq!(other.expect_err("99 below").kind(), Kind::Invalid);
    assert_eq!(ids(users, &squashed)[1..], [(99, Some(8))]);
    assert_eq!(ids(users, &plain)[1..], [(99, Some(8)), (1001, Some(1))]);
}

#[test]
fn the_layer_quota_tells_its_bounds_and_leaves_the_rest_to_the_volume() {
    let shape = ffs("ffs2", "quota");
    let below = attach(shape.format(), shape.device(), "").expect("attach");
    let each = Bounds::parse(below.clone(), "bytes=1000,nodes=2,each").expect("words");
    let volume = served(Arc::new(each));
    let (root, ann) = (
        volume.session(Cred::root()),
        volume.session(Cred::new(ANN, STAFF)),
    );
    let all = SetAttr::mode(0o777);
    root.setattr(root.root(), &all).expect("chmod");
    make(&ann, "one").expect("the first");
    assert_eq!(ids(QuotaOf::Users, &root), [(0, None), (ANN, Some(2))]);
    let its = root.quota(QuotaOf::Users, 1).expect("quota").quota;
    let its = its.expect("Ann's");
    assert_eq!((its.nodes.used, its.bytes.limits.hard), (1, Some(1000)));
    let set = root.set_quota(QuotaOf::Users, &limits(ANN, 5, 5));
    assert_eq!(set.expect_err("its own").kind(), Kind::NotPermitted);
    // Of groups, and where all share a bound, they are the volume's.
    root.set_quota(QuotaOf::Groups, &limits(STAFF, 1 << 20, 1))
        .expect("the volume's");
    assert_eq!(
        make(&ann, "two").expect_err("the group").kind(),
        Kind::Quota
    );
    let whole = Bounds::parse(below, "bytes=1M").expect("words");
    let root = served(Arc::new(whole)).session(Cred::root());
    assert_eq!(ids(QuotaOf::Groups, &root)[1..], [(STAFF, Some(1))]);
    root.set_quota(QuotaOf::Users, &limits(ANN, 1 << 20, 7))
        .expect("the volume's");
    let its = root.quota(QuotaOf::Users, ANN).expect("quota").quota;
    assert_eq!(its.expect("Ann's").nodes.limits.hard, Some(7));
}
