//! What others read of many volumes, of one in four of them, or of all with
//! `VOLARY_SUITES=all`: Linux, many in each guest, sleuthkit and dissect.ffs.

use crate::attach;
use crate::lists::without_the_examiners;
use crate::mend::is_whole;
use crate::oracle::{by_linux, by_sleuthkit, for_linux, on_disk};
use std::path::{Path, PathBuf};
use volary_core::FileKind;
use volary_testkit::oracle::{dissect, have, python, sleuthkit, vm};
use volary_testkit::suite::replay_command;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{Shape, as_root};

/// Volumes that are read at once: a guest is some seconds on its way.
const AT_ONCE: usize = 150;

/// The readers that there are, and what waits for them.
pub(crate) struct Readers {
    /// vmrun.
    linux: Option<PathBuf>,
    has_sleuthkit: bool,
    /// A Python with dissect.ffs.
    dissect: Option<PathBuf>,
    /// They read one volume in so many.
    step: usize,
    seen: usize,
    waiting: Vec<Left>,
    /// Volumes that Linux has read, sleuthkit, dissect.ffs.
    read: [usize; 3],
}

/// What a sequence left on a volume of this shape.
struct Left {
    shape: Shape,
    seed: u64,
    image: tempfile::NamedTempFile,
    ours: Tree,
}

impl Readers {
    pub(crate) fn new() -> Self {
        let tools = [sleuthkit::FLS, sleuthkit::ICAT, sleuthkit::RECOVER];
        Self {
            linux: vm::find(),
            has_sleuthkit: have(&tools),
            dissect: python::with_dissect_ffs(),
            step: if is_whole() { 1 } else { 4 },
            seen: 0,
            waiting: Vec::new(),
            read: [0; 3],
        }
    }

    /// Takes the volume that a sequence left, to be read with others.
    pub(crate) fn take(&mut self, shape: Shape, seed: u64, image: &[u8]) {
        self.seen += 1;
        if self.seen % self.step != 1 % self.step {
            return;
        }
        let ours = as_root(|cx| Tree::read(&attach(image), cx)).expect("our tree");
        let image = on_disk(image);
        self.waiting.push(Left {
            shape,
            seed,
            image,
            ours,
        });
        if self.waiting.len() == AT_ONCE {
            self.read();
        }
    }

    /// Reads what still waits; says what was read.
    pub(crate) fn end(mut self) -> String {
        self.read();
        let [linux, sleuthkit, dissect] = self.read;
        format!("read alike: {linux} by Linux, {sleuthkit} by sleuthkit, {dissect} by dissect.ffs")
    }

    fn read(&mut self) {
        let all = std::mem::take(&mut self.waiting);
        if all.is_empty() {
            return;
        }
        let read = [
            self.by_linux(&all),
            self.by_sleuthkit(&all),
            self.by_dissect(&all),
        ];
        for (sum, read) in self.read.iter_mut().zip(read) {
            *sum += read;
        }
    }

    /// Returns how many it has read.
    fn by_linux(&self, all: &[Left]) -> usize {
        let Some(vmrun) = &self.linux else { return 0 };
        let volumes = all
            .iter()
            .map(|left| for_linux(left.image.path(), &left.shape));
        let theirs = vm::trees(vmrun, &volumes.collect::<Vec<_>>()).expect("Linux");
        for (left, theirs) in all.iter().zip(theirs) {
            let ours = left.ours.clone().map(by_linux);
            left.compare("Linux", &ours, &theirs.map(by_linux));
        }
        all.len()
    }

    fn by_sleuthkit(&self, all: &[Left]) -> usize {
        let shown: Vec<_> = all.iter().filter(|left| !left.is_old()).collect();
        if !self.has_sleuthkit {
            return 0;
        }
        for left in &shown {
            let theirs = sleuthkit::tree(left.image.path()).expect("sleuthkit");
            let theirs = without_the_examiners(theirs).map(by_sleuthkit);
            let ours = as_sleuthkit_names(left.ours.clone().map(by_sleuthkit));
            left.compare("sleuthkit", &ours, &theirs);
        }
        shown.len()
    }

    fn by_dissect(&self, all: &[Left]) -> usize {
        let Some(python) = &self.dissect else {
            return 0;
        };
        let is_known = |left: &&Left| !left.is_old() && !left.shape.make.contains("order=big");
        let shown: Vec<_> = all.iter().filter(is_known).collect();
        if shown.is_empty() {
            return 0;
        }
        let images: Vec<&Path> = shown.iter().map(|left| left.image.path()).collect();
        let theirs = dissect::trees(python, &images).expect("dissect.ffs");
        for (left, theirs) in shown.iter().zip(theirs) {
            left.compare("dissect.ffs", &left.ours, &theirs);
        }
        shown.len()
    }
}

impl Left {
    /// Returns whether it is 4.3BSD's, of whose directories sleuthkit and dissect.ffs read nothing;
    /// dissect.ffs does not read big-endian volumes either.
    fn is_old(&self) -> bool {
        self.shape.make.contains("old")
    }

    fn compare(&self, whose: &str, ours: &Tree, theirs: &Tree) {
        let differences = ours.differences(theirs);
        let again = replay_command("VOLARY_SEED", &self.seed.to_string());
        assert!(
            differences.is_empty(),
            "{}: {whose} reads otherwise:\n{}\nto run it again: {again}",
            self.shape.name(),
            differences.join("\n")
        );
    }
}

/// Files and directories; sleuthkit shows a hat for a control character.
fn as_sleuthkit_names(tree: Tree) -> Tree {
    let shown = tree
        .0
        .into_iter()
        .filter(|(_, leaf)| matches!(leaf.kind, FileKind::File | FileKind::Dir));
    let hat = |byte| if byte < b' ' { b'^' } else { byte };
    Tree(
        shown
            .map(|(path, leaf)| (path.into_iter().map(hat).collect(), leaf))
            .collect(),
    )
}
