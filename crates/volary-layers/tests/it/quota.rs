use crate::{Rig, memory, n};
use proptest::prelude::*;
use std::sync::Arc;
use volary_core::{Create, Cred, Kind, Mode, NodeId, OpenId, RenameFlags, Result, SetAttr};
use volary_layers::{Quota, QuotaBounds};

struct Bounded {
    rig: Rig,
    quota: Arc<Quota>,
}

fn bounded(words: &str) -> Bounded {
    let quota = Arc::new(Quota::parse(memory(), words).unwrap());
    let rig = Rig::over(quota.clone());
    Bounded { rig, quota }
}

impl Bounded {
    fn make(&self, name: &str, uid: u32) -> Result<(NodeId, OpenId)> {
        let set = SetAttr::owned(0o644, uid, 0);
        let fs = &self.rig.fs;
        let made = fs.create(&self.rig.cx(), fs.root(), n(name), Create::New, &set)?;
        Ok((made.0.node, made.1))
    }
    fn write(&self, open: OpenId, at: Option<u64>, len: usize) -> Result<u64> {
        let data = vec![1; len];
        self.rig.fs.write(&self.rig.cx(), open, at, &data)
    }
    fn unlink(&self, name: &str) {
        let fs = &self.rig.fs;
        fs.unlink(&self.rig.cx(), fs.root(), n(name)).unwrap();
    }
    fn close(&self, open: OpenId) {
        self.rig.fs.close(&self.rig.cx(), open).unwrap();
    }
}

#[test]
fn what_goes_past_the_bound_is_refused_and_changes_nothing() {
    let b = bounded("bytes=1000,nodes=3");
    let (node, open) = b.make("a", 0).unwrap();
    b.write(open, Some(0), 600).unwrap();
    assert_eq!(b.write(open, Some(600), 401).unwrap_err(), Kind::Quota);
    assert_eq!(b.write(open, None, 401).unwrap_err(), Kind::Quota);
    b.write(open, Some(100), 500).unwrap();
    b.write(open, None, 400).unwrap();
    let longer = b.rig.fs.setattr(&b.rig.cx(), node, &SetAttr::size(1001));
    assert_eq!(longer.unwrap_err(), Kind::Quota);
    assert_eq!(b.quota.used(0), (1000, 1));
    b.rig.dir(b.rig.fs.root(), "d");
    let (_, other) = b.make("b", 0).unwrap();
    assert_eq!(b.make("c", 0).unwrap_err(), Kind::Quota);
    assert_eq!(b.rig.list(b.rig.fs.root()).len(), 3);
    b.unlink("a");
    assert_eq!(b.quota.used(0), (1000, 3), "it is open");
    b.close(open);
    assert_eq!(b.quota.used(0), (0, 2));
    let stat = b.rig.fs.statfs(&b.rig.cx()).unwrap();
    assert_eq!((stat.size, stat.free, stat.nodes_free), (1000, 1000, 1));
    b.close(other);
}

#[test]
fn each_owner_has_a_bound_and_root_has_none() {
    let b = bounded("bytes=100,each");
    let (node, mine) = b.make("mine", 7).unwrap();
    let (_, roots) = b.make("roots", 0).unwrap();
    b.write(mine, Some(0), 100).unwrap();
    b.write(roots, Some(0), 5000).unwrap();
    assert_eq!(b.write(mine, None, 1).unwrap_err(), Kind::Quota);
    let (_, theirs) = b.make("theirs", 8).unwrap();
    b.write(theirs, Some(0), 1).unwrap();
    let chown = SetAttr {
        uid: Some(8),
        ..SetAttr::default()
    };
    let given = b.rig.fs.setattr(&b.rig.cx(), node, &chown);
    assert_eq!(given.unwrap_err(), Kind::Quota);
    assert_eq!((b.quota.used(7), b.quota.used(8)), ((100, 1), (1, 1)));
    let rig = Rig {
        cred: Cred::new(8, 0),
        fs: b.rig.fs.clone(),
        now: volary_core::Time::from_secs(1000),
    };
    assert_eq!(rig.fs.statfs(&rig.cx()).unwrap().available, 99);
    [mine, roots, theirs]
        .into_iter()
        .for_each(|open| b.close(open));
}

#[test]
fn what_is_there_is_counted_once_for_all_its_names() {
    let below = Rig::over(memory());
    let root = below.fs.root();
    let dir = below.dir(root, "d");
    let node = below.file(dir, "a", b"12345");
    below.fs.link(&below.cx(), node, root, n("b")).unwrap();
    let set = SetAttr::default();
    below
        .fs
        .symlink(&below.cx(), root, n("l"), b"to", &set)
        .unwrap();
    let quota = Quota::parse(below.fs.clone(), "bytes=1").unwrap();
    assert_eq!(quota.used(0), (7, 3));
}

#[test]
fn words_that_are_no_bounds_are_refused() {
    for words in ["", "each", "bytes=x", "bytes=1,many", "nodes"] {
        let e = Quota::parse(memory(), words).err().unwrap();
        assert!(
            e.to_string().contains("bytes=SIZE, nodes=N"),
            "{words}: {e}"
        );
    }
}

/// Something done by one of three owners to one of four names.
#[derive(Clone, Debug)]
enum Act {
    Make(u8, u32),
    Write(u8, u16, u16),
    Append(u8, u16),
    Size(u8, u16),
    Give(u8, u32),
    Link(u8, u8),
    Move(u8, u8),
    Swap(u8, u8),
    Remove(u8),
    Close(u8),
    Open(u8),
}

fn acts() -> impl Strategy<Value = Act> {
    let name = || 0..4u8;
    prop_oneof![
        (name(), 0..3u32).prop_map(|(a, u)| Act::Make(a, u)),
        (name(), 0..900u16, 0..900u16).prop_map(|(a, at, len)| Act::Write(a, at, len)),
        (name(), 0..500u16).prop_map(|(a, len)| Act::Append(a, len)),
        (name(), 0..1500u16).prop_map(|(a, len)| Act::Size(a, len)),
        (name(), 0..3u32).prop_map(|(a, u)| Act::Give(a, u)),
        (name(), name()).prop_map(|(a, b)| Act::Link(a, b)),
        (name(), name()).prop_map(|(a, b)| Act::Move(a, b)),
        (name(), name()).prop_map(|(a, b)| Act::Swap(a, b)),
        name().prop_map(Act::Remove),
        name().prop_map(Act::Close),
        name().prop_map(Act::Open),
    ]
}

struct Player {
    rig: Rig,
    opens: Vec<(u8, OpenId)>,
}

impl Player {
    /// Refusals are answers too.
    fn act(&mut self, act: &Act) -> Result<()> {
        let (fs, root) = (self.rig.fs.clone(), self.rig.fs.root());
        let names = ["a", "b", "c", "d"];
        let name = |at: u8| n(names[usize::from(at)]);
        let cx = self.rig.cx();
        let open_of = |at: u8| self.opens.iter().find(|o| o.0 == at).map(|o| o.1);
        let node = |at: u8| fs.lookup(&cx, root, name(at)).map(|e| e.node);
        match *act {
            Act::Make(a, uid) => {
                let set = SetAttr::owned(0o644, uid, 0);
                let made = fs.create(&cx, root, name(a), Create::Truncate, &set)?;
                self.opens.push((a, made.1));
            }
            Act::Write(a, at, len) => {
                let open = open_of(a).ok_or(Kind::Stale)?;
                fs.write(&cx, open, Some(at.into()), &vec![1; len.into()])?;
            }
            Act::Append(a, len) => {
                let open = open_of(a).ok_or(Kind::Stale)?;
                fs.write(&cx, open, None, &vec![1; len.into()])?;
            }
            Act::Size(a, len) => {
                fs.setattr(&cx, node(a)?, &SetAttr::size(len.into()))?;
            }
            Act::Give(a, uid) => {
                let set = SetAttr {
                    uid: Some(uid),
                    ..SetAttr::default()
                };
                fs.setattr(&cx, node(a)?, &set)?;
            }
            Act::Link(a, b) => {
                fs.link(&cx, node(a)?, root, name(b))?;
            }
            Act::Move(a, b) => {
                fs.rename(&cx, root, name(a), root, name(b), RenameFlags::REPLACE)?;
            }
            Act::Swap(a, b) => {
                fs.rename(&cx, root, name(a), root, name(b), RenameFlags::SWAP)?;
            }
            Act::Remove(a) => fs.unlink(&cx, root, name(a))?,
            Act::Close(a) => {
                let at = self.opens.iter().position(|o| o.0 == a);
                let (_, open) = self.opens.remove(at.ok_or(Kind::Stale)?);
                fs.close(&cx, open)?;
            }
            Act::Open(a) => {
                let open = fs.open(&cx, node(a)?, Mode::ReadWrite)?;
                self.opens.push((a, open));
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        for (_, open) in self.opens.drain(..) {
            self.rig.fs.close(&self.rig.cx(), open).unwrap();
        }
    }

    fn end(&mut self) {
        let (fs, root) = (self.rig.fs.clone(), self.rig.fs.root());
        for name in ["a", "b", "c", "d"] {
            let _ = fs.unlink(&self.rig.cx(), root, n(name));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_count_is_what_a_new_count_finds_and_returns_to_nothing(
        acts in prop::collection::vec(acts(), 1..60),
        each in any::<bool>(),
    ) {
        let below = memory();
        let bounds = QuotaBounds { bytes: Some(2000), nodes: Some(3), each };
        let quota = Arc::new(Quota::new(below.clone(), bounds).unwrap());
        let mut player = Player { rig: Rig::over(quota.clone()), opens: Vec::new() };
        for act in &acts {
            let _ = player.act(act);
            for uid in 1..3 {
                let (bytes, nodes) = quota.used(uid);
                prop_assert!(bytes <= 2000 && nodes <= 3, "{act:?}: {bytes} {nodes}");
            }
        }
        player.close();
        let anew = Quota::new(below, bounds).unwrap();
        for uid in 0..3 {
            prop_assert_eq!(quota.used(uid), anew.used(uid));
        }
        player.end();
        for uid in 0..3 {
            prop_assert_eq!(quota.used(uid), (0, 0));
        }
    }
}
