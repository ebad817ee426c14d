//! What others read of many volumes of one kind: Linux, some in each guest; sleuthkit; dissect.ffs.

use crate::attach;
use crate::lists::without_the_examiners;
use crate::oracle::{by_linux, by_sleuthkit, on_disk};
use std::path::{Path, PathBuf};
use volary_core::FileKind;
use volary_testkit::oracle::{dissect, have, python, sleuthkit, vm};
use volary_testkit::suite::replay_command;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{Shape, as_root};

/// Volumes that are read at once: as many as a guest has disks.
const AT_ONCE: usize = 25;

/// The readers that there are for a kind of volume, and what waits for them.
pub(crate) struct Readers {
    name: String,
    /// vmrun, and how a guest mounts such a volume.
    linux: Option<(PathBuf, String)>,
    has_sleuthkit: bool,
    /// A Python with dissect.ffs.
    dissect: Option<PathBuf>,
    waiting: Vec<Left>,
    read: usize,
}

/// What a sequence left.
struct Left {
    seed: u64,
    image: tempfile::NamedTempFile,
    ours: Tree,
}

impl Readers {
    /// sleuthkit reads nothing of 4.3BSD's directories, dissect.ffs neither these nor big-endian
    /// volumes.
    pub(crate) fn new(shape: &Shape) -> Self {
        let is_old = shape.make.contains("old");
        let ufstype = match (shape.kind, is_old) {
            ("ffs2", _) => "ufs2",
            (_, true) => "old",
            _ => "44bsd",
        };
        let mount = format!("mount -t ufs -o ufstype={ufstype}");
        let tools = [sleuthkit::FLS, sleuthkit::ICAT, sleuthkit::RECOVER];
        let is_little = !shape.make.contains("order=big");
        let dissect = (is_little && !is_old).then(python::with_dissect_ffs);
        Self {
            name: shape.name(),
            linux: vm::find().map(|vmrun| (vmrun, mount)),
            has_sleuthkit: !is_old && have(&tools),
            dissect: dissect.flatten(),
            waiting: Vec::new(),
            read: 0,
        }
    }

    /// Takes the volume that a sequence left, to be read with others.
    pub(crate) fn take(&mut self, seed: u64, image: &[u8]) {
        let ours = as_root(|cx| Tree::read(&attach(image), cx)).expect("our tree");
        let image = on_disk(image);
        self.waiting.push(Left { seed, image, ours });
        if self.waiting.len() == AT_ONCE {
            self.read();
        }
    }

    /// Reads what still waits; says what was read.
    pub(crate) fn end(mut self) -> String {
        self.read();
        let by = |is_there: bool, whom| if is_there { whom } else { "" };
        format!(
            "{} volumes are read alike by{}{}{}",
            self.read,
            by(self.linux.is_some(), " Linux"),
            by(self.has_sleuthkit, " sleuthkit"),
            by(self.dissect.is_some(), " dissect.ffs")
        )
    }

    fn read(&mut self) {
        let all = std::mem::take(&mut self.waiting);
        if all.is_empty() {
            return;
        }
        let images: Vec<&Path> = all.iter().map(|left| left.image.path()).collect();
        if let Some((vmrun, mount)) = &self.linux {
            let ways: Vec<_> = images.iter().map(|&at| (at, mount.as_str())).collect();
            let theirs = vm::trees_of(vmrun, &ways).expect("Linux");
            for (left, theirs) in all.iter().zip(theirs) {
                let ours = left.ours.clone().map(by_linux);
                self.compare(left, "Linux", &ours, &theirs.map(by_linux));
            }
        }
        if let Some(python) = &self.dissect {
            let theirs = dissect::trees(python, &images).expect("dissect.ffs");
            for (left, theirs) in all.iter().zip(theirs) {
                self.compare(left, "dissect.ffs", &left.ours, &theirs);
            }
        }
        for left in all.iter().filter(|_| self.has_sleuthkit) {
            let theirs = sleuthkit::tree(left.image.path()).expect("sleuthkit");
            let theirs = without_the_examiners(theirs).map(by_sleuthkit);
            let ours = as_sleuthkit_names(left.ours.clone().map(by_sleuthkit));
            self.compare(left, "sleuthkit", &ours, &theirs);
        }
        self.read += all.len();
    }

    fn compare(&self, left: &Left, whose: &str, ours: &Tree, theirs: &Tree) {
        let differences = ours.differences(theirs);
        let again = replay_command("VOLARY_SEED", &left.seed.to_string());
        assert!(
            differences.is_empty(),
            "{}: {whose} reads otherwise:\n{}\nto run it again: {again}",
            self.name,
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
