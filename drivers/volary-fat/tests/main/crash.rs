//! Power cuts: a workload is recorded, and every state that the device may be
//! left in is looked at: after each write, with any of the sectors written
//! since the last flush.
//!
//! What must hold then: every entry leads to a chain of its own that is long
//! enough, without a circle and without a free cluster; only a file that was
//! being renamed may be there twice; a file holds nothing but what was written
//! to it; what was synced and not touched since is there, whole.

use crate::cuts::{preen, sectors, seeds};
use crate::raw::{Raw, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use volary_block::{MemDevice, Recorder, Request};
use volary_core::{
    BlockDevice, Cancel, Create, Cred, Ctx, Format, Fs, Kind, Make, Mode, Name, NodeId, Options,
    RenameFlags, SetAttr, Time,
};
use volary_fat::FAT;
use volary_testkit::rng::Rng;

/// What free clusters hold before: it must never be seen in a file.
const STALE: u8 = 0xdb;

/// A file as the workload knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    tag: u32,
    content: Vec<u8>,
}

/// What was on the disk for certain at some request, and what has been touched
/// since, with the request at which the next such point is.
struct Synced {
    at: usize,
    files: BTreeMap<String, Known>,
    touched: BTreeSet<String>,
}

struct Workload {
    fs: Fs,
    recorder: Arc<Recorder>,
    rng: Rng,
    files: BTreeMap<String, Known>,
    dirs: Vec<String>,
    synced: Vec<Synced>,
    next_tag: u32,
    now: i64,
}

const NAMES: [&str; 8] = [
    "A",
    "B.TXT",
    "a long name that takes three slots",
    "Mixed Case.txt",
    "another name with a rather long end, in five slots of a directory.data",
    "c",
    "lower.txt",
    "UPPER name",
];

impl Workload {
    fn cx<R>(&mut self, f: impl FnOnce(&Fs, &Ctx<'_>) -> R) -> R {
        self.now += 1;
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: Time::from_secs(self.now),
            cancel: &cancel,
        };
        f(&self.fs, &cx)
    }

    fn dir_id(&mut self, path: &str) -> NodeId {
        let mut node = self.fs.root();
        for name in path.split('/').filter(|n| !n.is_empty()) {
            node = self.cx(|fs, cx| {
                let name = Name::new(name.as_bytes()).unwrap();
                fs.lookup(cx, node, name).unwrap().node
            });
        }
        node
    }

    fn any_path(&mut self) -> (String, &'static str) {
        let dir = self.rng.pick(&self.dirs).clone();
        (dir, *self.rng.pick(&NAMES[..]))
    }

    /// Returns a path whose name is taken, in whatever case, or is free.
    fn taken(&self, path: &str) -> Option<String> {
        let mut all = self.files.keys().chain(&self.dirs);
        all.find(|p| p.trim_end_matches('/').eq_ignore_ascii_case(path))
            .cloned()
    }

    fn touch(&mut self, path: &str) {
        for s in self.synced.iter_mut().rev().take(1) {
            s.touched.insert(path.to_owned());
        }
    }

    fn bytes(tag: u32, len: usize) -> Vec<u8> {
        tag.to_le_bytes()
            .iter()
            .copied()
            .cycle()
            .take(len)
            .collect()
    }

    fn step(&mut self) {
        match self.rng.below(100) {
            0..30 => self.write_file(),
            30..45 => self.unlink(),
            45..65 => self.rename(),
            65..75 => self.truncate(),
            75..82 => self.mkdir(),
            82..86 => self.rmdir(),
            86..90 => self.rename_dir(),
            90..95 => self.sync(true),
            _ => self.sync(false),
        }
    }

    fn write_file(&mut self) {
        let (dir, name) = self.any_path();
        let path = format!("{dir}{name}");
        let known = self.taken(&path);
        if known.as_ref().is_some_and(|p| p.ends_with('/')) {
            return;
        }
        let path = known.unwrap_or(path);
        let parent = self.dir_id(&dir);
        let mut file = self.files.get(&path).cloned().unwrap_or_else(|| {
            self.next_tag += 1;
            Known {
                tag: 0x0100_0000 | self.next_tag << 8 | 0x55,
                content: Vec::new(),
            }
        });
        // What is longer goes on in another sector of the FAT sooner.
        let small = self.recorder.geometry().size < 1 << 20;
        let most = if small || self.rng.one_in(3) { 36 } else { 9 };
        let len = self.rng.below(most) as usize * 256;
        let at = match self.rng.below(4) {
            0 => 0,
            1 => file.content.len() + 4 * self.rng.below(400) as usize,
            _ => file.content.len(),
        } & !3;
        let data = Self::bytes(file.tag, len);
        let done = self.cx(|fs, cx| {
            let name = Name::new(name.as_bytes()).unwrap();
            let made = fs.create(cx, parent, name, Create::Open, &SetAttr::default());
            let (_, open) = made.map_err(|e| (false, e))?;
            let written = fs.write(cx, open, Some(at as u64), &data);
            fs.close(cx, open).unwrap();
            written.map_err(|e| (true, e))
        });
        match done {
            Ok(_) => {
                if len > 0 {
                    file.content.resize(file.content.len().max(at), 0);
                    let keep = file.content.len().max(at + len);
                    file.content.resize(keep, 0);
                    file.content[at..at + len].copy_from_slice(&data);
                }
            }
            Err((made, e)) => {
                assert_eq!(e, Kind::NoSpace);
                if !made {
                    return;
                }
            }
        }
        self.touch(&path);
        self.files.insert(path, file);
    }

    fn any_file(&mut self) -> Option<String> {
        let all: Vec<_> = self.files.keys().cloned().collect();
        (!all.is_empty()).then(|| self.rng.pick(&all).clone())
    }

    fn unlink(&mut self) {
        let Some(path) = self.any_file() else { return };
        let (dir, name) = split(&path);
        let parent = self.dir_id(dir);
        self.cx(|fs, cx| fs.unlink(cx, parent, Name::new(name.as_bytes()).unwrap()))
            .unwrap();
        self.touch(&path);
        self.files.remove(&path);
    }

    fn truncate(&mut self) {
        let Some(path) = self.any_file() else { return };
        let (dir, name) = split(&path);
        let parent = self.dir_id(dir);
        let len = self.files[&path].content.len() as u64;
        let size = self.rng.below(len + 1) & !3;
        self.cx(|fs, cx| {
            let node = fs
                .lookup(cx, parent, Name::new(name.as_bytes()).unwrap())
                .unwrap()
                .node;
            fs.setattr(cx, node, &SetAttr::size(size)).unwrap();
        });
        self.touch(&path);
        self.files
            .get_mut(&path)
            .unwrap()
            .content
            .truncate(size as usize);
    }

    fn rename(&mut self) {
        let Some(path) = self.any_file() else { return };
        let (to_dir, to_name) = self.any_path();
        let new = format!("{to_dir}{to_name}");
        let old = self.taken(&new);
        if old.as_ref().is_some_and(|p| p.ends_with('/')) {
            return;
        }
        let (dir, name) = split(&path);
        let (from, to) = (self.dir_id(dir), self.dir_id(&to_dir));
        let done = self.cx(|fs, cx| {
            let (a, b) = (
                Name::new(name.as_bytes()).unwrap(),
                Name::new(to_name.as_bytes()).unwrap(),
            );
            fs.rename(cx, from, a, to, b, RenameFlags::REPLACE)
        });
        if let Err(e) = done {
            assert_eq!(e, Kind::NoSpace);
            return;
        }
        self.touch(&path);
        let file = self.files.remove(&path).unwrap();
        if let Some(old) = old {
            self.touch(&old);
            self.files.remove(&old);
        }
        self.touch(&new);
        self.files.insert(new, file);
    }

    fn mkdir(&mut self) {
        if self.dirs.len() > 6 {
            return;
        }
        let (dir, name) = self.any_path();
        let path = format!("{dir}{name}");
        if self.taken(&path).is_some() {
            return;
        }
        let parent = self.dir_id(&dir);
        let done = self.cx(|fs, cx| {
            fs.mkdir(
                cx,
                parent,
                Name::new(name.as_bytes()).unwrap(),
                &SetAttr::default(),
            )
        });
        match done {
            Ok(_) => self.dirs.push(format!("{path}/")),
            Err(e) => assert_eq!(e, Kind::NoSpace),
        }
    }

    fn rmdir(&mut self) {
        let Some(at) = (1..self.dirs.len()).find(|&i| {
            let d = &self.dirs[i];
            let all = self.files.keys().chain(&self.dirs);
            all.filter(|p| p.starts_with(d.as_str())).count() == 1
        }) else {
            return;
        };
        let path = self.dirs.remove(at);
        let (dir, name) = split(path.trim_end_matches('/'));
        let parent = self.dir_id(dir);
        self.cx(|fs, cx| fs.rmdir(cx, parent, Name::new(name.as_bytes()).unwrap()))
            .unwrap();
    }

    fn rename_dir(&mut self) {
        if self.dirs.len() < 2 {
            return;
        }
        let at = 1 + self.rng.index(self.dirs.len() - 1);
        let old = self.dirs[at].clone();
        let (to_dir, to_name) = self.any_path();
        let new = format!("{to_dir}{to_name}/");
        if to_dir.starts_with(&old) || self.taken(new.trim_end_matches('/')).is_some() {
            return;
        }
        let (dir, name) = split(old.trim_end_matches('/'));
        let (from, to) = (self.dir_id(dir), self.dir_id(&to_dir));
        let done = self.cx(|fs, cx| {
            let (a, b) = (
                Name::new(name.as_bytes()).unwrap(),
                Name::new(to_name.as_bytes()).unwrap(),
            );
            fs.rename(cx, from, a, to, b, RenameFlags::REPLACE)
        });
        if let Err(e) = done {
            assert_eq!(e, Kind::NoSpace);
            return;
        }
        for d in &mut self.dirs {
            if d.starts_with(&old) {
                *d = format!("{new}{}", &d[old.len()..]);
            }
        }
        let inside: Vec<_> = self
            .files
            .keys()
            .filter(|p| p.starts_with(&old))
            .cloned()
            .collect();
        for path in inside {
            let file = self.files.remove(&path).unwrap();
            self.touch(&path);
            self.files
                .insert(format!("{new}{}", &path[old.len()..]), file);
        }
    }

    fn sync(&mut self, whole: bool) {
        let root = self.fs.root();
        self.cx(|fs, cx| {
            if whole {
                return fs.sync(cx).unwrap();
            }
            let open = fs.open(cx, root, Mode::Read).unwrap();
            fs.fsync(cx, open, false).unwrap();
            fs.close(cx, open).unwrap();
        });
        self.synced.push(Synced {
            at: self.recorder.requests().len(),
            files: self.files.clone(),
            touched: BTreeSet::new(),
        });
    }
}

fn split(path: &str) -> (&str, &str) {
    let at = path.rfind('/').unwrap() + 1;
    path.split_at(at)
}

/// Makes a volume whose free clusters are full of what nobody wrote.
fn volume(kind: &str, len: u64, options: &str) -> Arc<MemDevice> {
    let dev = Arc::new(MemDevice::new(len));
    let make = Make {
        options: Options::parse(options),
        ..Make::default()
    };
    FAT.make(dev.clone(), kind, &make).unwrap();
    let image = dev.to_vec();
    let data = Raw::new(&image).free_from();
    dev.write_at(data as u64, &vec![STALE; image.len() - data])
        .unwrap();
    dev
}

fn record(seed: u64, kind: &str, len: u64, options: &str, steps: usize) -> (Vec<u8>, Workload) {
    let dev = volume(kind, len, options);
    let base = dev.to_vec();
    let recorder = Arc::new(Recorder::new(dev));
    let fs = crate::keeping::attach(seed, recorder.clone());
    let mut work = Workload {
        fs,
        recorder,
        rng: Rng::new(seed),
        files: BTreeMap::new(),
        dirs: vec!["/".to_owned()],
        synced: Vec::new(),
        next_tag: 0,
        now: 1_700_000_000,
    };
    for _ in 0..steps {
        work.step();
    }
    work.sync(true);
    if seed.is_multiple_of(2) {
        work.cx(|fs, cx| fs.detach(cx).unwrap());
    }
    (base, work)
}

/// Returns whether a content is zeros and repetitions of one tag.
fn is_of_one_file(content: &[u8]) -> bool {
    let mut whole: Option<Vec<u8>> = None;
    for part in content.chunks(256) {
        if part.iter().all(|&b| b == 0) {
            continue;
        }
        if whole.as_deref().is_some_and(|w| w[..part.len()] == *part) {
            continue;
        }
        for tag in part.chunks_exact(4).filter(|t| *t != [0; 4]) {
            let whole = whole.get_or_insert_with(|| tag.repeat(64));
            if *tag != whole[..4] || tag[0] != 0x55 {
                return false;
            }
        }
    }
    true
}

struct Explorer<'a> {
    image: Vec<u8>,
    work: &'a Workload,
    seed: u64,
    states: usize,
    preen_each: usize,
}

impl Explorer<'_> {
    /// Looks at the image with some sectors written, and takes them back.
    fn look(&mut self, at: usize, chosen: &[(usize, &[u8])]) {
        let mut undo = Vec::with_capacity(chosen.len());
        for (offset, data) in chosen {
            let place = &mut self.image[*offset..*offset + data.len()];
            undo.push((*offset, place.to_vec()));
            place.copy_from_slice(data);
        }
        self.states += 1;
        if let Err(what) = self.check(at) {
            panic!(
                "after request {at}, with {} sectors since the flush: {what}\n\
                 VOLARY_SEED={} cargo test -p volary-fat crash",
                chosen.len(),
                self.seed
            );
        }
        for (offset, old) in undo.into_iter().rev() {
            self.image[offset..offset + old.len()].copy_from_slice(&old);
        }
    }

    fn check(&mut self, at: usize) -> Result<(), String> {
        let tree = Raw::new(&self.image).walk()?;
        for (path, file) in &tree.files {
            if !is_of_one_file(&file.content) {
                return Err(format!("{path} holds what was not written to it"));
            }
        }
        self.check_synced(at, &tree)?;
        if self.states.is_multiple_of(self.preen_each) {
            self.preen()?;
        }
        Ok(())
    }

    fn check_synced(&self, at: usize, tree: &Tree) -> Result<(), String> {
        let Some(synced) = self.work.synced.iter().rev().find(|s| s.at <= at) else {
            return Ok(());
        };
        for (path, known) in &synced.files {
            if synced.touched.contains(path) {
                continue;
            }
            match tree.files.get(path) {
                Some(file) if file.content == known.content => {}
                Some(file) => {
                    return Err(format!(
                        "{path} was synced with {} bytes and has {} now, or others",
                        known.content.len(),
                        file.content.len()
                    ));
                }
                None => return Err(format!("{path} was synced and is not there")),
            }
        }
        Ok(())
    }

    /// The check mends it without a question.
    fn preen(&self) -> Result<(), String> {
        preen(&self.image).map(|_| ())
    }
}

/// Looks at states of a recorded workload: after each write, and `subsets`
/// times with some of the sectors since the flush.
fn explore(seed: u64, kind: &str, len: u64, options: &str, steps: usize, subsets: usize) -> usize {
    let (base, work) = record(seed, kind, len, options, steps);
    let requests = work.recorder.requests();
    let base_len = base.len();
    let mut rng = Rng::new(seed ^ 0x5eed);
    let mut explorer = Explorer {
        image: base,
        work: &work,
        seed,
        states: 0,
        preen_each: 200 + base_len / 4096,
    };
    let mut open: Vec<(usize, &[u8])> = Vec::new();
    for (at, request) in requests.iter().enumerate() {
        match request {
            Request::Flush => {
                explorer.look(at, &open);
                for (offset, data) in open.drain(..) {
                    explorer.image[offset..offset + data.len()].copy_from_slice(data);
                }
            }
            Request::Write { .. } => {
                open.extend(sectors(request));
                explorer.look(at, &open);
                for _ in 0..subsets {
                    let odds = 1 + rng.below(4);
                    let some: Vec<_> = open
                        .iter()
                        .filter(|_| rng.one_in(odds + 1))
                        .copied()
                        .collect();
                    explorer.look(at, &some);
                }
            }
            _ => {}
        }
    }
    explorer.look(requests.len(), &open);
    explorer.states
}

#[test]
fn no_power_cut_on_fat12_leaves_damage() {
    let states: usize = seeds(80)
        .into_iter()
        .map(|seed| {
            explore(
                seed,
                "fat12",
                100 << 10,
                "cluster=512,root-entries=64",
                120,
                10,
            )
        })
        .sum();
    println!("{states} states");
}

#[test]
fn no_power_cut_on_fat16_leaves_damage() {
    let states: usize = seeds(12)
        .into_iter()
        .map(|seed| explore(seed, "fat16", 3 << 20, "cluster=512", 150, 10))
        .sum();
    println!("{states} states");
}

#[test]
fn no_power_cut_on_fat32_leaves_damage() {
    let states: usize = seeds(12)
        .into_iter()
        .map(|seed| explore(seed, "fat32", 36 << 20, "cluster=512", 150, 10))
        .sum();
    println!("{states} states");
}
