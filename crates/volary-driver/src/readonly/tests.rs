use super::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use volary_core::{Caps, Cookie, DirBuf, Error, FileKind, Kind, Mode, Name, NodeId, Time};
use volary_layers::{Count, DirCache, Munge, ReadOnly, Side};
use volary_testkit::volumes::as_root;
use volary_testkit::{Fresh, Suite};

/// A tree that a closure lists. The bytes of a file are its number plus the offset.
struct Told<L>(L);

impl<L: Fn(&mut Listing<u8>) -> Result<()> + Send + Sync + 'static> Tree for Told<L> {
    type File = u8;
    const HAS_PLACES: bool = true;

    fn list(&self, out: &mut Listing<u8>) -> Result<()> {
        (self.0)(out)
    }
    fn read(&self, file: &u8, offset: u64, buf: &mut [u8]) -> Result<()> {
        for (byte, at) in buf.iter_mut().zip(offset..) {
            *byte = file.wrapping_add(at as u8);
        }
        Ok(())
    }
    fn place(&self, file: &u8) -> Option<u64> {
        Some(u64::from(*file) << 20)
    }
    fn size(&self) -> u64 {
        1 << 30
    }
}

fn some(out: &mut Listing<u8>) -> Result<()> {
    let time = Time::from_secs(1_600_000_000);
    out.add(b"./dir/sub/deep", Item::file(1000, 3).modified(time))?;
    out.add(b"/dir//", Item::dir().mode(0o750).owner(5, 6))?;
    out.add(b"dir/link", Item::symlink(*b"sub/deep"))?;
    out.add(
        b"file",
        Item::file(70_000, 9)
            .mode(0o100_640)
            .xattr(*b"user.a", *b"1"),
    )?;
    out.link(b"dir/other", b"file")?;
    out.add(b"fifo", Item::special(FileKind::Fifo, 0))?;
    out.add(b"device", Item::special(FileKind::CharDevice, 1 << 32 | 3))?;
    out.add(b"empty", Item::file(0, 1))?;
    (0..300).try_for_each(|n| out.add(format!("many/{n:03}").as_bytes(), Item::file(n, n as u8)))
}

fn attached(list: impl Fn(&mut Listing<u8>) -> Result<()> + Send + Sync + 'static) -> Fs {
    attach("told", Told(list), &Attach::default()).expect("attach")
}

fn walk(fs: &Fs, path: &str) -> Result<NodeId> {
    as_root(|cx| {
        path.split('/')
            .filter(|part| !part.is_empty())
            .try_fold(fs.root(), |dir, part| {
                Ok(fs.lookup(cx, dir, Name::new(part.as_bytes())?)?.node)
            })
    })
}

fn names(fs: &Fs, dir: NodeId, room: usize) -> Vec<Vec<u8>> {
    as_root(|cx| {
        let open = fs.open(cx, dir, Mode::Read).expect("open");
        let (mut all, mut at) = (Vec::new(), Cookie::START);
        loop {
            let mut out = DirBuf::new(room, 1 << 16, true);
            let is_end = fs.readdir(cx, open, at, &mut out).expect("readdir");
            all.extend(out.iter().map(|entry| entry.name.to_vec()));
            at = out.last_cookie().unwrap_or(at);
            if is_end {
                break;
            }
        }
        fs.close(cx, open).expect("close");
        all
    })
}

fn content(fs: &Fs, node: NodeId, len: usize) -> Vec<u8> {
    as_root(|cx| {
        let open = fs.open(cx, node, Mode::Read).expect("open");
        let mut bytes = vec![0; len];
        let read = fs.read(cx, open, 0, &mut bytes).expect("read");
        fs.close(cx, open).expect("close");
        bytes.truncate(read);
        bytes
    })
}

fn messages(fs: &Fs) -> Vec<String> {
    fs.findings()
        .into_iter()
        .map(|finding| finding.message)
        .collect()
}

#[test]
fn a_tree_keeps_the_contract_of_a_volume_for_reading() {
    let suite = || {
        Suite::new("told", || {
            Fresh::new(attached(some)).reattach(|| attached(some))
        })
    };
    assert!(suite().run().passed.len() > 10);
    type Over = fn(Fs) -> Fs;
    let layers: [(&str, Over); 4] = [
        ("readonly", |fs| Arc::new(ReadOnly::new(fs))),
        ("count", |fs| Arc::new(Count::new(fs))),
        ("munge", |fs| Arc::new(Munge::new(fs, Side::Above))),
        ("dircache", |fs| {
            Arc::new(DirCache::parse(fs, "").expect("a layer"))
        }),
    ];
    for (name, layer) in layers {
        assert!(suite().under(name, layer).run().passed.len() > 10);
    }
}

/// A tree that tells no size, of files that hold zeros.
struct Sizeless;

impl Tree for Sizeless {
    type File = ();
    fn list(&self, out: &mut Listing<()>) -> Result<()> {
        out.add(b"replaced", Item::file(1 << 20, ()))?;
        out.add(b"dir/one", Item::file(513, ()))?;
        out.add(b"two", Item::file(10, ()))?;
        out.link(b"dir/two", b"two")?;
        out.add(b"replaced", Item::file(0, ()))
    }
    fn read(&self, _: &(), _: u64, buf: &mut [u8]) -> Result<()> {
        buf.fill(0);
        Ok(())
    }
}

#[test]
fn a_tree_that_tells_no_size_is_as_large_as_its_files_and_full() {
    let fs = attach("sizeless", Sizeless, &Attach::default()).unwrap();
    let s = as_root(|cx| fs.statfs(cx)).unwrap();
    assert_eq!((s.block_size, s.size, s.free), (512, 3 * 512, 0));
    // With the root and `dir`.
    assert_eq!((s.nodes, s.nodes_free), (5, 0));
}

#[test]
fn a_lazy_tree_is_as_large_as_the_files_that_were_seen() {
    let all = keys(&[("a/b", "some"), ("a/c", "text"), ("d", "more")]);
    let fs = attach_lazy("keys", all, &Attach::default());
    let size = || as_root(|cx| fs.statfs(cx)).unwrap().size;
    assert_eq!(size(), 0);
    for _ in 0..2 {
        walk(&fs, "d").unwrap();
        assert_eq!(size(), 512);
    }
    let a = walk(&fs, "a").unwrap();
    assert_eq!(names(&fs, a, 9).len(), 2);
    assert_eq!(size(), 3 * 512);
}

#[test]
fn links_are_counted_and_lead_back() {
    let fs = attached(some);
    as_root(|cx| {
        let links = |path| fs.getattr(cx, walk(&fs, path).unwrap()).unwrap().nlink;
        assert_eq!(
            (links("/"), links("dir"), links("dir/sub"), links("many")),
            (4, 3, 2, 2)
        );
        assert_eq!(
            (links("file"), links("dir/link"), links("empty")),
            (2, 1, 1)
        );
        assert_eq!(walk(&fs, "dir/other"), walk(&fs, "file"));
        let sub = walk(&fs, "dir/sub").unwrap();
        let parent = fs.parent(cx, sub).unwrap();
        assert_eq!(
            (parent.node, parent.attr.mode),
            (walk(&fs, "dir").unwrap(), 0o750)
        );
        assert_eq!(fs.parent(cx, fs.root()).unwrap().node, fs.root());
        let file = walk(&fs, "file").unwrap();
        assert_eq!(fs.parent(cx, file).unwrap_err(), Kind::NotDir);
        assert_eq!(fs.getattr(cx, file).unwrap().mode, 0o640);
        assert_eq!(fs.getattr(cx, walk(&fs, "dir").unwrap()).unwrap().uid, 5);
        assert_eq!(
            fs.readlink(cx, walk(&fs, "dir/link").unwrap()).unwrap(),
            b"sub/deep"
        );
        assert_eq!(fs.readlink(cx, file).unwrap_err(), Kind::Invalid);
        assert_eq!(fs.getxattr(cx, file, b"user.a").unwrap(), b"1");
        assert_eq!(fs.getxattr(cx, file, b"user.b").unwrap_err(), Kind::NoXattr);
        assert_eq!(fs.listxattr(cx, file).unwrap(), [b"user.a"]);
        assert_eq!(
            fs.getattr(cx, walk(&fs, "device").unwrap()).unwrap().rdev,
            1 << 32 | 3
        );
    });
}

#[test]
fn reads_end_with_the_file_and_extents_say_where() {
    let fs = attached(some);
    as_root(|cx| {
        let open = fs.open(cx, walk(&fs, "file").unwrap(), Mode::Read).unwrap();
        let mut buf = [0; 100];
        assert_eq!(fs.read(cx, open, 69_990, &mut buf).unwrap(), 10);
        assert_eq!(buf[0], 9_u8.wrapping_add(69_990_u64 as u8));
        assert_eq!(fs.read(cx, open, 70_000, &mut buf).unwrap(), 0);
        assert_eq!(fs.read(cx, open, u64::MAX, &mut buf).unwrap(), 0);
        let mut extents = Vec::new();
        fs.extents(cx, open, 69_000, 5_000, &mut extents).unwrap();
        assert_eq!((extents[0].offset, extents[0].len), (69_000, 1000));
        assert_eq!(
            extents[0].place,
            volary_core::Place::Device((9 << 20) + 69_000)
        );
        let dir = fs.open(cx, fs.root(), Mode::Read).unwrap();
        assert_eq!(fs.read(cx, dir, 0, &mut buf).unwrap_err(), Kind::IsDir);
        let mut out = DirBuf::new(9, 99, false);
        let listed = fs.readdir(cx, open, Cookie::START, &mut out);
        assert_eq!(listed.unwrap_err(), Kind::NotDir);
        assert_eq!(
            fs.open(cx, fs.root(), Mode::Write).unwrap_err(),
            Kind::ReadOnly
        );
        fs.detach(cx).unwrap();
        assert_eq!(fs.read(cx, open, 0, &mut buf).unwrap_err(), Kind::Stale);
        assert_eq!(fs.close(cx, open).unwrap_err(), Kind::Stale);
        assert_eq!(fs.getattr(cx, fs.root()).unwrap_err(), Kind::Stale);
        fs.detach(cx).unwrap();
    });
}

#[test]
fn every_entry_is_listed_once_in_buffers_of_any_size() {
    let fs = attached(some);
    let many = walk(&fs, "many").unwrap();
    for room in [1, 7, 299, 300, 1000] {
        let all = names(&fs, many, room);
        assert_eq!(all.len(), 300);
        assert!(all.is_sorted());
    }
    as_root(|cx| {
        let open = fs.open(cx, many, Mode::Read).unwrap();
        for cookie in [301, 1 << 40, u64::MAX] {
            let mut out = DirBuf::new(9, 99, false);
            let listed = fs.readdir(cx, open, Cookie(cookie), &mut out);
            assert_eq!(listed.unwrap_err(), Kind::Invalid);
        }
    });
}

#[test]
fn what_cannot_be_shown_is_left_out_and_told_once() {
    let long = "n".repeat(256);
    let fs = attached(move |out| {
        out.add(b"file", Item::file(1, 1))?;
        for path in ["../etc/passwd", "a/../../b", "file/below", "nul\0", &long] {
            out.add(path.as_bytes(), Item::file(1, 2))?;
        }
        out.add(b"dir/file", Item::file(1, 3))?;
        out.add(b"dir", Item::file(1, 4))?;
        out.link(b"link", b"nothing")?;
        out.link(b"link", b"dir")?;
        out.add(b"/", Item::symlink(*b"x"))?;
        out.add(b"huge", Item::file(u64::MAX, 5))
    });
    assert_eq!(names(&fs, fs.root(), 99), [&b"a"[..], b"dir", b"file"]);
    let told = messages(&fs);
    assert_eq!(told.len(), 10, "{told:?}");
    assert!(
        told[0].contains("../etc/passwd") && told[0].contains("leads outside"),
        "{}",
        told[0]
    );
    assert!(messages(&fs).is_empty());
}

#[test]
fn the_later_entry_of_a_path_counts_and_the_earlier_is_gone() {
    let fs = attached(|out| {
        out.add(b"f", Item::file(1, 1))?;
        out.link(b"g", b"f")?;
        out.add(b"f", Item::file(2, 2))
    });
    let (f, g) = (walk(&fs, "f").unwrap(), walk(&fs, "g").unwrap());
    as_root(|cx| {
        assert_eq!(
            (
                fs.getattr(cx, f).unwrap().size,
                fs.getattr(cx, f).unwrap().nlink
            ),
            (2, 1)
        );
        assert_eq!(
            (
                fs.getattr(cx, g).unwrap().size,
                fs.getattr(cx, g).unwrap().nlink
            ),
            (1, 1)
        );
    });
    let fs = attached(|out| {
        out.add(b"f", Item::file(1, 1))?;
        out.add(b"f", Item::file(2, 2))
    });
    as_root(|cx| {
        for ino in [2, 4, u64::MAX] {
            let replaced = NodeId::new(ino, fs.root().generation).unwrap();
            assert_eq!(fs.getattr(cx, replaced).unwrap_err(), Kind::Stale);
        }
    });
}

#[test]
fn ids_mean_the_same_until_the_volume_is_another() {
    let (one, again) = (attached(some), attached(some));
    assert_eq!(walk(&one, "dir/sub/deep"), walk(&again, "dir/sub/deep"));
    let other = attached(|out| {
        out.add(b"new", Item::file(1, 1))?;
        some(out)
    });
    let old = walk(&one, "dir/sub/deep").unwrap();
    as_root(|cx| assert_eq!(other.getattr(cx, old).unwrap_err(), Kind::Stale));
}

#[test]
fn entries_past_the_memory_are_refused_in_words() {
    let how = Attach {
        memory: 1 << 20,
        ..Attach::default()
    };
    let many = |out: &mut Listing<u8>| {
        (0..u64::MAX).try_for_each(|n| out.add(format!("{n}").as_bytes(), Item::file(1, 1)))
    };
    let e = attach("told", Told(many), &how).err().expect("a refusal");
    assert_eq!(e, Kind::Unsupported);
    assert!(e.to_string().contains("-o memory=SIZE"), "{e}");
    let deep = |out: &mut Listing<u8>| out.add(&b"d/".repeat(1 << 20), Item::file(1, 1));
    assert!(attach("told", Told(deep), &how).is_err());
}

/// A changeable store of keys, in which slashes separate directories.
#[derive(Default)]
struct Keys(Mutex<BTreeMap<String, Vec<u8>>>);

impl Lazy for Arc<Keys> {
    type File = String;

    fn list(&self, dir: &[u8]) -> Result<Entries<String>> {
        let dir = String::from_utf8_lossy(dir);
        let prefix = if dir.is_empty() {
            String::new()
        } else {
            format!("{dir}/")
        };
        let keys = self.0.lock().unwrap();
        let mut all = Vec::new();
        for (key, value) in keys.iter() {
            let Some(rest) = key.strip_prefix(&prefix) else {
                continue;
            };
            match rest.split_once('/') {
                Some((name, _)) => all.push((name.into(), Item::dir())),
                None => all.push((rest.into(), Item::file(value.len() as u64, key.clone()))),
            }
        }
        match all.is_empty() && !dir.is_empty() {
            true => Err(Kind::NotFound.into()),
            false => Ok(all),
        }
    }

    fn read(&self, key: &String, offset: u64, buf: &mut [u8]) -> Result<()> {
        let keys = self.0.lock().unwrap();
        let value = keys.get(key).ok_or(Kind::Stale)?;
        let from = offset as usize;
        let bytes = value
            .get(from..from + buf.len())
            .ok_or_else(|| Error::from(Kind::Stale))?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

fn keys(pairs: &[(&str, &str)]) -> Arc<Keys> {
    let keys = Keys::default();
    for (key, value) in pairs {
        keys.0
            .lock()
            .unwrap()
            .insert((*key).into(), (*value).into());
    }
    Arc::new(keys)
}

fn lazy(keys: &Arc<Keys>) -> Fs {
    attach_lazy("keys", keys.clone(), &Attach::default())
}

#[test]
fn a_lazy_tree_keeps_the_contract_too() {
    let some = || {
        keys(&[
            ("a/b/c", "deep"),
            ("a/d", "text"),
            ("f", "more"),
            ("..", "no name"),
        ])
    };
    Suite::new("keys", move || {
        Fresh::new(lazy(&some())).reattach(move || lazy(&some()))
    })
    .run();
    let fs = lazy(&some());
    assert_eq!(content(&fs, walk(&fs, "a/b/c").unwrap(), 10), b"deep");
    as_root(|cx| {
        let links = |path| fs.getattr(cx, walk(&fs, path).unwrap()).unwrap().nlink;
        assert_eq!(
            (links("/"), links("a"), links("a/b"), links("f")),
            (3, 3, 2, 1)
        );
        let below = fs.parent(cx, walk(&fs, "a/b").unwrap()).unwrap();
        assert_eq!(below.node, walk(&fs, "a").unwrap());
        let open = fs.open(cx, fs.root(), Mode::Read).unwrap();
        let mut out = DirBuf::new(9, 99, false);
        assert!(fs.readdir(cx, open, Cookie(7), &mut out).is_ok());
        let listed = fs.readdir(cx, open, Cookie(u64::MAX), &mut out);
        assert_eq!(listed.unwrap_err(), Kind::Invalid);
    });
    let mut all = names(&fs, fs.root(), 1);
    all.sort();
    assert_eq!(all, [b"a", b"f"]);
}

#[test]
fn what_changes_behind_a_lazy_tree_is_seen() {
    let keys = keys(&[("a/x", "1"), ("f", "old")]);
    let fs = lazy(&keys);
    let (x, f) = (walk(&fs, "a/x").unwrap(), walk(&fs, "f").unwrap());
    keys.0.lock().unwrap().remove("a/x");
    keys.0.lock().unwrap().insert("f".into(), b"longer".into());
    as_root(|cx| {
        assert_eq!(fs.getattr(cx, x).unwrap_err(), Kind::Stale);
        assert_eq!(fs.getattr(cx, f).unwrap().size, 6);
    });
    assert_eq!(walk(&fs, "a").unwrap_err(), Kind::NotFound);
    keys.0
        .lock()
        .unwrap()
        .insert("a".into(), b"a file now".into());
    assert_eq!(content(&fs, walk(&fs, "a").unwrap(), 99), b"a file now");
}

#[test]
fn nodes_past_the_memory_are_forgotten_but_for_open_ones() {
    let all: Vec<(String, String)> = (0..900)
        .map(|n| (format!("d/{n}"), n.to_string()))
        .collect();
    let all: Vec<_> = all
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let how = Attach {
        memory: 0,
        ..Attach::default()
    };
    let fs = attach_lazy("keys", keys(&all), &how);
    let (first, idle) = (walk(&fs, "d/0").unwrap(), walk(&fs, "d/1").unwrap());
    as_root(|cx| {
        let open = fs.open(cx, first, Mode::Read).unwrap();
        for n in 2..900 {
            walk(&fs, &format!("d/{n}")).unwrap();
        }
        assert_eq!(fs.getattr(cx, idle).unwrap_err(), Kind::Stale);
        assert_eq!(fs.getattr(cx, first).unwrap().size, 1);
        assert_eq!(fs.read(cx, open, 0, &mut [0; 9]).unwrap(), 1);
        assert_eq!(walk(&fs, "d/1").unwrap(), idle);
        let dir = fs.open(cx, walk(&fs, "d").unwrap(), Mode::Read).unwrap();
        let mut out = DirBuf::new(9, 99, false);
        let listed = fs.readdir(cx, dir, Cookie::START, &mut out);
        assert!(listed.unwrap_err().to_string().contains("-o memory=SIZE"));
        fs.close(cx, open).unwrap();
        let opens: Vec<_> = (0..900)
            .map(|n| fs.open(cx, walk(&fs, &format!("d/{n}"))?, Mode::Read))
            .collect();
        let refused = opens
            .into_iter()
            .find_map(std::result::Result::err)
            .expect("a refusal");
        assert_eq!(refused, Kind::TooManyOpen);
    });
}

/// A format with fewer abilities than can be shown, and a claim beyond them.
struct Narrow;

impl Tree for Narrow {
    type File = ();
    const HAS_PLACES: bool = true;

    fn list(&self, out: &mut Listing<()>) -> Result<()> {
        out.add(b"file", Item::file(9, ()).xattr(*b"user.a", *b"1"))
    }
    fn read(&self, _: &(), _: u64, _: &mut [u8]) -> Result<()> {
        Ok(())
    }
    fn caps(&self, most: Caps) -> Caps {
        let less = most.without(Caps::HARD_LINKS | Caps::XATTRS | Caps::EXTENTS);
        Caps {
            time_step: 1_000_000_000,
            name_max: u16::MAX,
            ..less.with(Caps::WRITE)
        }
    }
}

#[test]
fn a_tree_claims_what_it_keeps_and_no_more_than_can_be_shown() {
    let fs = attach("narrow", Narrow, &Attach::default()).expect("attach");
    let caps = fs.caps();
    assert_eq!((caps.time_step, caps.name_max), (1_000_000_000, 255));
    assert!(caps.has(Caps::SYMLINKS) && !caps.has(Caps::WRITE));
    let file = walk(&fs, "file").expect("a file");
    as_root(|cx| {
        assert_eq!(fs.listxattr(cx, file).unwrap_err(), Kind::Unsupported);
        let open = fs.open(cx, file, Mode::Read).expect("an open");
        let extents = fs.extents(cx, open, 0, 9, &mut Vec::new());
        assert_eq!(extents.unwrap_err(), Kind::Unsupported);
        fs.close(cx, open).expect("closed");
    });
}
