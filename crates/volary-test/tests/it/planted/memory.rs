//! Mistakes in the memory that a driver takes. All that it answers is right.

use super::reader::mistakes;
use std::collections::HashMap;
use std::hint::black_box;
use std::process::Command;
use std::sync::{Arc, Mutex};
use volary_core::{
    Attr, Cookie, Create, Ctx, DirBuf, Entry, FileKind, Fs, Layer, Mode, Name, NodeId, OpenId,
    Result, SetAttr,
};
use volary_test::Suite;

mistakes! {
    ReadTakesTheFile ReadTakesWhatIsBefore WriteTakesTheFile OpenTakesTheFile OpenKeepsTheFile
    LookupsAreKept AttributesAreKept OpensAreKept ListingsAreKept ReadsAreKept FilesAreKept
}
use Mistake as M;

impl Mistake {
    /// Returns the case that must catch it in each suite.
    fn cases(self) -> (&'static str, &'static str) {
        match self {
            M::ReadTakesTheFile
            | M::ReadTakesWhatIsBefore
            | M::WriteTakesTheFile
            | M::OpenTakesTheFile
            | M::OpenKeepsTheFile => (
                "a_byte_of_a_large_file_takes_little_memory",
                "a_byte_of_a_large_hole_takes_little_memory",
            ),
            _ => (
                "reading_again_and_again_takes_no_more_memory",
                "using_the_same_again_and_again_takes_no_more_memory",
            ),
        }
    }
}

/// A layer that makes one mistake.
struct Planted {
    below: Fs,
    mistake: Mistake,
    opens: Mutex<HashMap<OpenId, NodeId>>,
    of_opens: Mutex<HashMap<OpenId, Vec<u8>>>,
    kept: Mutex<Vec<Vec<u8>>>,
}

impl Planted {
    fn over(below: Fs, mistake: Mistake) -> Fs {
        Arc::new(Self {
            below,
            mistake,
            opens: Mutex::default(),
            of_opens: Mutex::default(),
            kept: Mutex::default(),
        })
    }

    /// Keeps some memory for ever, if this is the mistake.
    fn keep(&self, mistake: Mistake, len: usize) {
        if self.mistake == mistake {
            self.kept.lock().unwrap().push(vec![7; len]);
        }
    }

    /// Takes memory for the bytes of an open file before an offset, or for all of them.
    fn take(&self, cx: &Ctx<'_>, open: OpenId, to: Option<u64>) -> Vec<u8> {
        let node = self.opens.lock().unwrap().get(&open).copied();
        let attr = node.and_then(|node| self.below.getattr(cx, node).ok());
        let file = attr.filter(|attr| attr.kind == FileKind::File);
        let len = file.map_or(0, |attr| to.unwrap_or(attr.size).min(attr.size));
        vec![7; len as usize]
    }
}

impl Layer for Planted {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.keep(M::LookupsAreKept, 2000);
        self.below.lookup(cx, dir, name)
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.keep(M::AttributesAreKept, 2000);
        self.below.getattr(cx, node)
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.keep(M::ListingsAreKept, 5000);
        self.below.readdir(cx, dir, from, out)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let (entry, open) = self.below.create(cx, dir, name, how, set)?;
        self.opens.lock().unwrap().insert(open, entry.node);
        Ok((entry, open))
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.keep(M::OpensAreKept, 2000);
        let open = self.below.open(cx, node, mode)?;
        self.opens.lock().unwrap().insert(open, node);
        match self.mistake {
            M::OpenTakesTheFile => drop(black_box(self.take(cx, open, None))),
            M::OpenKeepsTheFile => {
                let all = self.take(cx, open, None);
                self.of_opens.lock().unwrap().insert(open, all);
            }
            M::FilesAreKept => {
                let some = self.take(cx, open, Some(2 << 20));
                self.kept.lock().unwrap().push(some);
            }
            _ => {}
        }
        Ok(open)
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        match self.mistake {
            M::ReadTakesTheFile => drop(black_box(self.take(cx, open, None))),
            M::ReadTakesWhatIsBefore => drop(black_box(self.take(cx, open, Some(offset)))),
            _ => self.keep(M::ReadsAreKept, 2000),
        }
        self.below.read(cx, open, offset, buf)
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        if self.mistake == M::WriteTakesTheFile {
            drop(black_box(self.take(cx, open, None)));
        }
        self.below.write(cx, open, offset, data)
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.opens.lock().unwrap().remove(&open);
        self.of_opens.lock().unwrap().remove(&open);
        self.below.close(cx, open)
    }
}

/// The environment variable that says which mistake the process is about, in which suite.
const KEY: &str = "PLANTED_IN_MEMORY";

/// Runs a suite on the mistake that the environment names: a process of its own for each, as what
/// one has taken and given back hides what the next takes.
#[test]
#[ignore = "part of every_mistake_in_memory_is_caught"]
fn one_mistake_in_memory() {
    let named = std::env::var(KEY).expect("a mistake");
    let (suite, name) = named.split_once(' ').expect("a suite and a mistake");
    let mut all = Mistake::ALL.iter();
    let mistake = all.find(|mistake| format!("{mistake:?}") == name);
    let mistake = *mistake.expect("a mistake by name");
    let (reading, writing) = mistake.cases();
    let (suite, case) = match suite {
        "reading" => {
            let make = move || Planted::over(crate::volumes::reader(), mistake);
            let suite = Suite::reading("reading", make, &crate::volumes::manifest());
            (suite, reading)
        }
        _ => {
            let make = move || Planted::over(crate::volumes::writer(), mistake);
            (Suite::new("writing", make), writing)
        }
    };
    // The others pass, and the whole suite takes long if each read takes all of a file.
    let report = suite.only(case).report();
    assert!(report.has_failed(case), "{report}");
}

#[test]
fn every_mistake_in_memory_is_caught() {
    let all = Mistake::ALL.iter();
    let all = all.flat_map(|mistake| ["reading", "writing"].map(|suite| (suite, mistake)));
    // What only reads is not written.
    let all = all.filter(|one| *one != ("reading", &M::WriteTakesTheFile));
    for (suite, mistake) in all {
        let mut run = Command::new(std::env::current_exe().expect("this program"));
        run.args([
            "--exact",
            "planted::memory::one_mistake_in_memory",
            "--ignored",
        ]);
        let run = run.env(KEY, format!("{suite} {mistake:?}"));
        let told = run.env_remove("VOLARY_CASE").output().expect("a run");
        let out = String::from_utf8_lossy(&told.stdout);
        assert!(
            told.status.success(),
            "{suite}: {mistake:?} survived:\n{out}"
        );
        println!("{suite}: {mistake:?}: caught");
    }
}
