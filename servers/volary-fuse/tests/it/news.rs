//! What another client of the volume changes is seen through the mount: each kind of news
//! takes from the kernel what it would keep for a day.

use crate::leases::{RH, leased};
use crate::mount::{Mount, clock, memory, until, volume_of};
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use volary_core::{
    Call, Cancel, Caps, Change, Create, Cred, Ctx, Fs, Layer, Mode, Name, NodeId, Op, RenameFlags,
    Result, SetAttr,
};
use volary_fuse::{MountOptions, RequestKind};
use volary_testkit::Telling;

fn write_by_other(mount: &Mount, name: &str, content: &str) {
    let other = mount.other();
    let set = SetAttr::mode(0o644);
    let (_, open) = other
        .create(
            other.root(),
            name.as_bytes(),
            Create::Truncate,
            Mode::Write,
            &set,
        )
        .unwrap();
    other.write(open, Some(0), content.as_bytes()).unwrap();
    other.close(open).unwrap();
}

#[test]
fn content_that_another_client_writes_replaces_what_the_kernel_holds() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    fs::write(mount.at("file"), "old content").unwrap();
    assert_eq!(fs::read_to_string(mount.at("file")).unwrap(), "old content");
    write_by_other(&mount, "file", "new");
    let is_new = || fs::read_to_string(mount.at("file")).unwrap() == "new";
    until("the new content is seen", is_new);
}

#[test]
fn names_that_another_client_makes_moves_and_removes_are_seen() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    let other = mount.other();
    assert!(!mount.at("made").exists());
    write_by_other(&mount, "made", "x");
    until("the new name is seen", || mount.at("made").exists());
    let listed = || fs::read_dir(mount.mounted.path()).unwrap().count();
    assert_eq!(listed(), 1);
    let root = other.root();
    other
        .rename(root, b"made", root, b"moved", RenameFlags::REPLACE)
        .unwrap();
    until("the name is moved", || {
        !mount.at("made").exists() && mount.at("moved").exists()
    });
    other.unlink(root, b"moved").unwrap();
    until("the name is gone", || !mount.at("moved").exists());
    assert_eq!(listed(), 0);
}

#[test]
fn attributes_that_another_client_sets_are_seen() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    fs::write(mount.at("file"), "x").unwrap();
    let readonly = || {
        fs::metadata(mount.at("file"))
            .unwrap()
            .permissions()
            .readonly()
    };
    assert!(!readonly());
    let other = mount.other();
    let node = other.lookup(other.root(), b"file").unwrap().node;
    other.setattr(node, &SetAttr::mode(0o444)).unwrap();
    until("the mode is seen", readonly);
}

fn mount() -> Option<Mount> {
    Mount::new(&MountOptions::default())
}

fn stat(mount: &Mount, path: &str) -> Metadata {
    fs::metadata(mount.at(path)).unwrap()
}

#[test]
fn directories_have_the_links_and_times_that_others_changes_gave_them() {
    let Some(mount) = mount() else { return };
    let other = mount.other();
    let root = other.root();
    for dir in ["d", "e"] {
        fs::create_dir(mount.at(dir)).unwrap();
    }
    let [d, e] = ["d", "e"].map(|name| other.lookup(root, name.as_bytes()).unwrap().node);
    let links = || ["", "d", "e"].map(|dir| stat(&mount, dir).nlink());
    assert_eq!(links(), [4, 2, 2]);
    let seen = |expected| until("the links are seen", || links() == expected);
    let new = SetAttr::mode(0o755);
    other.mkdir(d, b"sub", &new).unwrap();
    seen([4, 3, 2]);
    other
        .rename(d, b"sub", e, b"sub", RenameFlags::REPLACE)
        .unwrap();
    seen([4, 2, 3]);
    other.rmdir(e, b"sub").unwrap();
    seen([4, 2, 2]);
    other.mkdir(root, b"f", &new).unwrap();
    seen([5, 2, 2]);
}

#[test]
fn a_name_that_leads_elsewhere_now_is_looked_up_anew() {
    let Some(mount) = mount() else { return };
    let other = mount.other();
    let root = other.root();
    for name in ["a", "b", "c"] {
        fs::write(mount.at(name), name).unwrap();
    }
    let number = |name| stat(&mount, name).ino();
    let [a, b, c] = ["a", "b", "c"].map(number);
    let [kept_a, kept_b] = ["a", "b"].map(|name| File::open(mount.at(name)).unwrap());
    let moved = kept_a.metadata().unwrap();
    other
        .rename(root, b"a", root, b"b", RenameFlags::REPLACE)
        .unwrap();
    until("what was a has another time of change", || {
        let now = kept_a.metadata().unwrap();
        (now.ctime(), now.ctime_nsec()) != (moved.ctime(), moved.ctime_nsec())
    });
    until("b is what was a", || number("b") == a);
    until("what was b has no name", || {
        kept_b.metadata().unwrap().nlink() == 0
    });
    other
        .rename(root, b"b", root, b"c", RenameFlags::SWAP)
        .unwrap();
    until("b and c have changed places", || {
        (number("b"), number("c")) == (c, a)
    });
    assert!(b != c);
}

#[test]
fn another_name_is_counted_and_one_less() {
    let Some(mount) = mount() else { return };
    let other = mount.other();
    let root = other.root();
    fs::write(mount.at("a"), "a").unwrap();
    let links = || stat(&mount, "a").nlink();
    assert_eq!(links(), 1);
    let node = other.lookup(root, b"a").unwrap().node;
    other.link(node, root, b"b").unwrap();
    until("the second is counted", || links() == 2);
    other.unlink(root, b"b").unwrap();
    until("it is not any more", || links() == 1);
}

/// Returns what one read gives, without a look at the attributes before it.
fn at_once(path: &Path) -> String {
    let mut data = [0; 100];
    let len = File::open(path).unwrap().read_at(&mut data, 0).unwrap();
    String::from_utf8(data[..len].to_vec()).unwrap()
}

/// Somebody who takes a name from the root, for which another's lease is in the way: until
/// that is given up, the kernel is told no news of the root, nor any that came later.
fn while_the_kernel_cannot_be_told<T>(mount: &Mount, round: usize, act: impl FnOnce() -> T) -> T {
    let other = mount.other();
    fs::write(mount.at("leased"), "x").unwrap();
    until("all is closed", || mount.volume.open_count() == 0);
    let (open, breaks) = leased(&other, "leased", RH);
    let path = mount.at("leased");
    let removing = thread::spawn(move || fs::remove_file(path));
    breaks.recv().unwrap();
    until("it waits", || mount.volume.waiting_count() == 1);
    let news = format!("news {round}");
    let set = SetAttr::mode(0o755);
    other.mkdir(other.root(), news.as_bytes(), &set).unwrap();
    let answer = act();
    // Nobody waits for it any more, whatever was seen.
    other.close(open).unwrap();
    removing.join().unwrap().unwrap();
    answer
}

#[test]
fn who_opens_a_file_reads_what_was_written_though_the_kernel_cannot_be_told_yet() {
    let Some(mount) = mount() else { return };
    fs::write(mount.at("g"), "old").unwrap();
    assert_eq!(at_once(&mount.at("g")), "old");
    let read = while_the_kernel_cannot_be_told(&mount, 0, || {
        write_by_other(&mount, "g", "new");
        at_once(&mount.at("g"))
    });
    assert_eq!(read, "new");
}

#[test]
fn who_opens_a_file_waits_a_little_for_the_kernel_to_be_told_of_its_size() {
    let Some(mount) = mount() else { return };
    let opens = || mount.mounted.counts().of(RequestKind::Open);
    // On a busy host it may not wait long enough each time.
    let is_whole = (0..200).any(|round| {
        fs::write(mount.at("g"), "old").unwrap();
        assert_eq!(at_once(&mount.at("g")), "old");
        let reading = while_the_kernel_cannot_be_told(&mount, round, || {
            write_by_other(&mount, "g", "new and longer");
            let (before, path) = (opens(), mount.at("g"));
            let reading = thread::spawn(move || at_once(&path));
            until("it is opened", || opens() > before);
            reading
        });
        reading.join().unwrap() == "new and longer"
    });
    assert!(is_whole);
}

#[test]
fn who_lists_a_directory_sees_what_others_did_though_the_kernel_cannot_be_told_yet() {
    let Some(mount) = Mount::of_fat(64 << 20, &MountOptions::default()) else {
        return;
    };
    let names = |dir: &str| {
        let entries = fs::read_dir(mount.at(dir)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    for name in ["d", "d/a", "d/b", "e"] {
        fs::create_dir(mount.at(name)).unwrap();
    }
    let counts = mount.mounted.counts();
    let asked = || counts.of(RequestKind::ReadDir) + counts.of(RequestKind::ReadDirPlus);
    until("the kernel keeps both listings", || {
        let before = asked();
        assert_eq!((names("d").len(), names("e").len()), (2, 0));
        asked() == before
    });
    let listed = while_the_kernel_cannot_be_told(&mount, 0, || {
        let other = mount.other();
        let root = other.root();
        let [d, e] = [&b"d"[..], b"e"].map(|name| other.lookup(root, name).unwrap().node);
        other.mkdir(d, b"c", &SetAttr::mode(0o755)).unwrap();
        other.rmdir(d, b"a").unwrap();
        let keep = RenameFlags::KEEP;
        other.rename(d, b"b", e, b"moved", keep).unwrap();
        (names("d"), names("e"))
    });
    assert_eq!(listed, (vec!["c".into()], vec!["moved".into()]));
}

/// A volume whose driver tells of changes made elsewhere.
struct Watched {
    below: Fs,
    telling: Arc<Telling>,
}

impl Watched {
    /// Changes it elsewhere, and tells.
    fn change(&self, change: Change, how: impl FnOnce(&Fs, &Ctx<'_>)) {
        self.as_root(how);
        self.telling.tell(change);
    }

    fn as_root<T>(&self, act: impl FnOnce(&Fs, &Ctx<'_>) -> T) -> T {
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: clock(),
            cancel: &cancel,
        };
        act(&self.below, &cx)
    }

    fn node(&self, name: &str) -> NodeId {
        let name = Name::new(name.as_bytes()).unwrap();
        self.as_root(|fs, cx| fs.lookup(cx, fs.root(), name).unwrap().node)
    }
}

fn rewrite(fs: &Fs, cx: &Ctx<'_>, node: NodeId, content: &str) {
    let open = fs.open(cx, node, Mode::Write).unwrap();
    fs.write(cx, open, Some(0), content.as_bytes()).unwrap();
    fs.close(cx, open).unwrap();
}

/// The kernel would go by what it remembers for an hour.
#[test]
fn what_the_driver_tells_of_is_passed_on() {
    let below = memory();
    let watched = Watched {
        telling: Arc::new(Telling::new(below.clone())),
        below,
    };
    let options = MountOptions {
        remember: Some(Duration::from_secs(3600)),
        ..MountOptions::default()
    };
    let Some(mount) = Mount::of_volume(volume_of(watched.telling.clone()), &options) else {
        return;
    };
    fs::create_dir(mount.at("d")).unwrap();
    fs::write(mount.at("f"), "first").unwrap();
    let [d, f] = ["d", "f"].map(|name| watched.node(name));
    let kept = File::open(mount.at("f")).unwrap();
    let reads = |content: &str| {
        let mut data = [0; 9];
        let len = kept.read_at(&mut data, 0).unwrap();
        &data[..len] == content.as_bytes()
    };
    assert!(reads("first"));
    watched.change(Change::Data(f), |fs, cx| rewrite(fs, cx, f, "other"));
    until("data", || reads("other"));
    let mode = || kept.metadata().unwrap().mode() & 0o777;
    let set = |mode| {
        move |fs: &Fs, cx: &Ctx<'_>| {
            fs.setattr(cx, f, &SetAttr::mode(mode)).unwrap();
        }
    };
    watched.change(Change::Attr(f), set(0o640));
    until("attributes", || mode() == 0o640);
    assert_eq!(stat(&mount, "d").nlink(), 2);
    watched.change(Change::Entries(d), |fs, cx| {
        let name = Name::new(b"sub").unwrap();
        fs.mkdir(cx, d, name, &SetAttr::mode(0o755)).unwrap();
    });
    until("entries", || stat(&mount, "d").nlink() == 3);
    watched.change(Change::Everything, |fs, cx| {
        set(0o600)(fs, cx);
        rewrite(fs, cx, f, "third");
    });
    until("everything", || reads("third") && mode() == 0o600);
    watched.change(Change::Gone(f), |fs, cx| {
        fs.unlink(cx, fs.root(), Name::new(b"f").unwrap()).unwrap();
    });
    until("that it is gone", || kept.metadata().unwrap().nlink() == 0);
}

/// A volume that others change, of which an open is the first to see.
struct Fetching {
    below: Fs,
    /// What the next open finds in this file.
    next: Mutex<Option<(NodeId, &'static str)>>,
}

impl Layer for Fetching {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn caps(&self) -> Caps {
        self.below.caps().with(Caps::SHARED)
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if op.call == Call::Open
            && let Some((node, content)) = self.next.lock().unwrap().take()
        {
            let (cred, cancel) = (Cred::root(), Cancel::new());
            let cx = Ctx {
                cred: &cred,
                now: clock(),
                cancel: &cancel,
            };
            rewrite(&self.below, &cx, node, content);
        }
        call()
    }
}

/// The kernel would go by the size that it remembers for an hour.
#[test]
fn who_opens_a_file_reads_all_that_the_open_found() {
    let fetching = Arc::new(Fetching {
        below: memory(),
        next: Mutex::default(),
    });
    let options = MountOptions {
        remember: Some(Duration::from_secs(3600)),
        ..MountOptions::default()
    };
    let Some(mount) = Mount::of_volume(volume_of(fetching.clone()), &options) else {
        return;
    };
    fs::write(mount.at("f"), "old").unwrap();
    let other = mount.other();
    let f = other.lookup(other.root(), b"f").unwrap().node;
    for content in ["longer than before", "longer than that, and than before"] {
        assert!(stat(&mount, "f").len() < content.len() as u64);
        *fetching.next.lock().unwrap() = Some((f, content));
        assert_eq!(at_once(&mount.at("f")), content);
        assert_eq!(stat(&mount, "f").len(), content.len() as u64);
    }
}
