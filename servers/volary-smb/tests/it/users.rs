//! What users of one share cannot do to each other, nor to the server.

use crate::served::{Served, now};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Create, Cred, Mode, NodeId, SetAttr};
use volary_mem::{Mem, MemOptions};
use volary_session::{OpenHow, Volume, VolumeOptions};
use volary_smb::{Config, Share, User};
use volary_testkit::smb::{Client, Fail, How, access, disposition, status};

const WRITE_ATTRIBUTES: u32 = 0x100;
const WRITE_DAC: u32 = 0x4_0000;
const ADD_FILE: u32 = 0x2;
const DELETE_CHILD: u32 = 0x40;
const SET_REPARSE_POINT: u32 = 0x0009_00A4;
const NAME_TOO_LONG: u32 = 0xC000_0106;
const A: u32 = 1000;
const B: u32 = 1001;

/// A server whose shares `share` and `fixed` are one volume, `fixed` for reading, of the users a, b and root.
struct Shared {
    served: Served,
    volume: Arc<Volume>,
}

impl Shared {
    fn new() -> Self {
        let options = MemOptions {
            dir_mode: 0o777,
            ..MemOptions::default()
        };
        let fs = Mem::attach(options, now()).expect("a volume");
        let volume = Volume::new(fs, VolumeOptions::new("share", now));
        let mut config = Config::new("VOLARY", now);
        config.limits.failed_logon_delay = Duration::ZERO;
        let users = [
            ("a", Cred::new(A, A)),
            ("b", Cred::new(B, B)),
            ("root", Cred::root()),
        ];
        config.users = users
            .map(|(name, cred)| User::with_password(name, "pass", cred))
            .into();
        let fixed = Share {
            read_only: true,
            ..Share::new("fixed", Arc::clone(&volume))
        };
        config.shares = vec![Share::new("share", Arc::clone(&volume)), fixed];
        let served = Served::new(config);
        Self { served, volume }
    }

    /// Returns a user's client, which says that it is the one with this number.
    fn client(&self, user: &str, guid: u8) -> Client {
        self.client_of(user, guid, "share")
    }

    fn client_of(&self, user: &str, guid: u8, share: &str) -> Client {
        let address = (Ipv4Addr::LOCALHOST, self.served.port).into();
        let client = Client::connect(address, user, "pass", share, [guid; 16]);
        client.expect("a logon").0
    }

    fn node(&self, path: &str) -> NodeId {
        let session = self.volume.session(Cred::root());
        let node = session.root();
        path.split('\\').fold(node, |dir, name| {
            session.lookup(dir, name.as_bytes()).expect("it").node
        })
    }

    fn set_mode(&self, path: &str, mode: u32) {
        let session = self.volume.session(Cred::root());
        let set = session.setattr(self.node(path), &SetAttr::mode(mode));
        set.expect("a mode");
    }
}

fn refused<T>() -> Result<T, Fail> {
    Err(Fail::Status(status::ACCESS_DENIED))
}

fn make(rights: u32) -> How {
    How {
        disposition: disposition::CREATE,
        ..How::open(rights)
    }
}

fn directory(rights: u32) -> How {
    How {
        options: 1,
        ..How::open(rights)
    }
}

/// Returns a descriptor that denies a user these rights, and gives everybody all others (MS-DTYP 2.4.6).
fn denying(uid: u32, rights: u32) -> Vec<u8> {
    let everyone = [1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let user = [
        &[1, 2, 0, 0, 0, 0, 0, 22, 1, 0, 0, 0][..],
        &uid.to_le_bytes(),
    ]
    .concat();
    let entry = |kind: u8, mask: u32, sid: &[u8]| {
        let len = u8::try_from(8 + sid.len()).expect("a short one");
        [&[kind, 0, len, 0][..], &mask.to_le_bytes(), sid].concat()
    };
    let entries = [entry(1, rights, &user), entry(0, 0x1f_01ff, &everyone)].concat();
    let len = u16::try_from(8 + entries.len()).expect("a short one");
    let mut descriptor = vec![1, 0, 4, 0x80];
    descriptor.extend([0; 12]);
    descriptor.extend(20_u32.to_le_bytes());
    descriptor.extend([2, 0]);
    descriptor.extend(len.to_le_bytes());
    descriptor.extend([2, 0, 0, 0]);
    descriptor.extend(entries);
    descriptor
}

/// Denies b these rights on what root has made.
fn deny(root: &Client, path: &str, rights: u32) {
    let how = How {
        options: 0,
        ..How::open(WRITE_DAC)
    };
    let open = root.open(path, &how).expect("an open").open;
    let set = root.set_security(open, 4, &denying(B, rights));
    set.expect("a descriptor");
    root.close(open).expect("closed");
}

/// `MountPoint`'s sibling for symlinks (MS-FSCC 2.1.2.4), relative.
fn symlink_to(target: &str) -> Vec<u8> {
    let name: Vec<u8> = target.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let len = u16::try_from(name.len()).expect("a short one");
    let data = 12 + 2 * len;
    let mut out = 0xA000_000C_u32.to_le_bytes().to_vec();
    out.extend([data, 0, 0, len, len, len].map(u16::to_le_bytes).concat());
    out.extend(1_u32.to_le_bytes());
    out.extend([&name[..], &name].concat());
    out
}

#[test]
fn a_name_is_added_and_replaced_only_as_descriptors_let() {
    let shared = Shared::new();
    let (root, b) = (shared.client("root", 1), shared.client("b", 2));
    root.make_dir("d").expect("a directory");
    root.open("d\\g", &make(access::WRITE)).expect("a file");
    deny(&root, "d\\g", access::DELETE);
    deny(&root, "d", ADD_FILE | DELETE_CHILD);
    let all = access::WRITE | access::READ | access::DELETE | WRITE_ATTRIBUTES;
    let f = b.open("f", &make(all)).expect("a file").open;
    assert_eq!(b.open("d\\x", &make(access::WRITE)).map(drop), refused());
    assert_eq!(b.rename_to(f, "d\\x", false), refused());
    assert_eq!(b.link(f, "d\\x"), refused());
    assert_eq!(b.link(f, "x"), Ok(()));
    // A file whose attributes b may not change gets no further name from b.
    root.open("h", &make(access::WRITE)).expect("a file");
    deny(&root, "h", WRITE_ATTRIBUTES);
    let h = b.open("h", &How::open(access::READ | access::WRITE));
    assert_eq!(b.link(h.expect("an open").open, "y"), refused());
    // What b may write, but not delete, does not become a symlink.
    let how = How::open(access::WRITE | WRITE_ATTRIBUTES);
    let g = b.open("d\\g", &how).expect("an open").open;
    let target = symlink_to("..\\x");
    assert_eq!(b.control(g, SET_REPARSE_POINT, &target), refused());
    assert!(b.open("d\\g", &How::open(access::READ)).is_ok());
    let own = b.open("own", &make(all)).expect("a file").open;
    assert_eq!(b.control(own, SET_REPARSE_POINT, &target), Ok(()));
    // May b delete, but not add, neither.
    root.make_dir("e").expect("a directory");
    root.open("e\\g", &make(access::WRITE)).expect("a file");
    deny(&root, "e\\g", 0);
    deny(&root, "e", ADD_FILE);
    let g = b.open("e\\g", &How::open(all)).expect("an open").open;
    assert_eq!(b.control(g, SET_REPARSE_POINT, &target), refused());
}

#[test]
fn a_share_for_reading_takes_no_name() {
    let shared = Shared::new();
    let a = shared.client("a", 1);
    a.open("f", &make(access::WRITE)).expect("a file");
    let reader = shared.client_of("a", 1, "fixed");
    let f = reader.open("f", &How::open(access::READ_ATTRIBUTES));
    assert_eq!(reader.link(f.expect("an open").open, "g"), refused());
    assert!(a.open("g", &How::open(access::READ)).is_err());
}

#[test]
fn names_are_told_only_to_who_may_list_their_directory() {
    let shared = Shared::new();
    let (a, b) = (shared.client("a", 1), shared.client("b", 2));
    let told = |client: &Client, watching| {
        client.echo().expect("a reply");
        client.was_told(watching)
    };
    for dir in ["private", "private\\below", "denied"] {
        a.make_dir(dir).expect("a directory");
    }
    shared.set_mode("private", 0o700);
    deny(&shared.client("root", 3), "denied", access::READ);
    assert_eq!(
        b.open("private", &directory(access::READ)).map(drop),
        refused()
    );
    assert_eq!(
        b.open("denied", &directory(access::READ)).map(drop),
        refused()
    );
    // What is said after the request is answered after it is there.
    let watch = |client: &Client| {
        let watching = client.watch_tree("").expect("a watch");
        client.echo().expect("a reply");
        watching
    };
    let (of_a, of_b) = (watch(&a), watch(&b));
    for dir in ["private", "private\\below", "denied"] {
        let all = access::WRITE | access::DELETE;
        let name = format!("{dir}\\secret");
        let file = a.open(&name, &make(all)).expect("a file").open;
        a.write(file, 0, b"x").expect("written");
        a.rename(file, &format!("{name}-2")).expect("renamed");
        a.set_delete(file, true).expect("marked");
        a.close(file).expect("closed");
        // By another server of the same volume.
        let session = shared.volume.session(Cred::new(A, A));
        let how = OpenHow::from(Mode::Write);
        let (node, set) = (shared.node(dir), SetAttr::mode(0o600));
        let made = session.create(node, b"elsewhere", Create::New, how, &set);
        session.close(made.expect("a file").1).expect("closed");
        session.unlink(node, b"elsewhere").expect("removed");
        assert!(!told(&b, &of_b), "{dir}");
    }
    assert!(told(&a, &of_a));
    // What goes out of such a directory came, for b, out of nowhere.
    let file = a.open("private\\out", &make(access::DELETE));
    let file = file.expect("a file").open;
    assert!(!told(&b, &of_b));
    a.rename(file, "out").expect("renamed");
    assert!(told(&b, &of_b));
    // Once it is not private any more, b is told.
    shared.set_mode("private", 0o755);
    let of_b = watch(&b);
    a.open("private\\below\\plain", &make(access::WRITE))
        .expect("a file");
    assert!(told(&b, &of_b));
}

#[test]
fn a_lease_is_its_user_s_alone() {
    const WRITE_CACHE: u32 = 7;
    let shared = Shared::new();
    let key = [0x4b; 16];
    let (a, b) = (shared.client("a", 9), shared.client("b", 9));
    let how = How {
        lease: Some((key, WRITE_CACHE)),
        ..make(access::READ | access::WRITE)
    };
    let opened = a.open("f", &how).expect("a file");
    assert_eq!(opened.lease, WRITE_CACHE);
    shared.set_mode("f", 0o600);
    let root = shared.client("root", 1);
    let opener = std::thread::spawn(move || root.open("f", &How::open(access::READ)).map(drop));
    // Whether or not the lease is being broken by now, it is none of b's.
    for _ in 0..20 {
        let unknown = Err(Fail::Status(status::OBJECT_NAME_NOT_FOUND));
        assert_eq!(b.acknowledge(key, 3), unknown);
        std::thread::park_timeout(Duration::from_millis(20));
    }
    while a.acknowledge(key, 3).is_err() {
        assert!(!opener.is_finished(), "the lease did not keep it waiting");
        std::thread::park_timeout(Duration::from_millis(20));
    }
    assert_eq!(opener.join().expect("no panic"), Ok(()));
}

#[test]
fn a_path_that_is_kept_has_4095_bytes_at_most() {
    const LEVELS: usize = 20;
    let shared = Shared::new();
    let a = shared.client("a", 1);
    // Each level has 255 bytes and a separator, of which 16 are 4,095.
    let name = "\u{4e00}".repeat(85);
    let session = shared.volume.session(Cred::new(A, A));
    let mut dir = session.root();
    for _ in 0..LEVELS {
        let set = SetAttr::mode(0o755);
        dir = session
            .mkdir(dir, name.as_bytes(), &set)
            .expect("a directory")
            .node;
    }
    let path = |levels: usize| vec![name.as_str(); levels].join("\\");
    let look = directory(access::READ_ATTRIBUTES);
    assert!(a.open(&path(16), &look).is_ok());
    let long = Fail::Status(NAME_TOO_LONG);
    assert_eq!(a.open(&path(17), &look).map(drop), Err(long));
    // A short name stands for the long one, which is what is kept.
    let top = a.open(&name, &look).expect("an open").open;
    let short = a.query(top, 1, 21).expect("a short name");
    let units = short[4..]
        .chunks_exact(2)
        .map(|u| u16::from_le_bytes([u[0], u[1]]));
    let short = String::from_utf16(&units.collect::<Vec<_>>()).expect("UTF-16");
    let path = |levels: usize| vec![short.as_str(); levels].join("\\");
    assert!(a.open(&path(16), &look).is_ok());
    assert_eq!(a.open(&path(17), &look).map(drop), Err(long));
    let file = a.open("f", &make(access::DELETE | WRITE_ATTRIBUTES));
    let file = file.expect("a file").open;
    let to = format!("{}\\x", path(16));
    assert_eq!(a.rename(file, &to), Err(long));
    assert_eq!(a.link(file, &to), Err(long));
}
