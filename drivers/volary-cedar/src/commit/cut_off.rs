//! Changes and commits that a panic cut off. Servers catch panics and go on with the volume: what is
//! half done must not be committed with what comes after.

use crate::commit::core::{Core, Takes};

impl Core {
    /// Runs work of which nobody may see a half.
    pub(crate) fn whole<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.at_work += 1;
        let done = work(self);
        self.at_work -= 1;
        done
    }

    /// Makes the volume read-only if a panic has cut a change or a commit off. What was not
    /// committed by then is lost, as in a power cut. Called at the start of each operation.
    pub(crate) fn end_what_was_cut_off(&mut self) {
        if std::mem::take(&mut self.at_work) == 0 {
            return;
        }
        self.undo();
        if self.takes != Takes::Nothing {
            self.takes = Takes::CutOff;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::CEDAR;
    use crate::attached::fs::local;
    use crate::attached::operations::Attached;
    use crate::tree::btree::Tree;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use volary_block::MemDevice;
    use volary_core::{Attach, CheckMode, FileSystem, Fs, Kind, Name, Options, Result, SetAttr};
    use volary_testkit::volumes::{self, NOW, as_root};

    fn mkdir(fs: &dyn FileSystem, name: &str) -> Result<()> {
        let name = Name::new(name.as_bytes()).unwrap();
        as_root(|cx| {
            fs.mkdir(cx, fs.root(), name, &SetAttr::mode(0o755))
                .map(drop)
        })
    }

    fn has(fs: &Fs, name: &str) -> bool {
        let name = Name::new(name.as_bytes()).unwrap();
        as_root(|cx| fs.lookup(cx, fs.root(), name)).is_ok()
    }

    /// What a panic in the middle of a change leaves on the disk.
    #[test]
    fn a_change_that_panics_is_never_committed() {
        let dev = Arc::new(MemDevice::new(2 << 20));
        volumes::make(&CEDAR, dev.clone(), "cedar", "");
        let how = Attach {
            options: Options::parse("commit=3600"),
            ..Attach::default()
        };
        let fs = local(Attached::new(dev.clone(), &how).unwrap()).unwrap();
        mkdir(&fs, "before").unwrap();
        as_root(|cx| fs.sync(cx)).unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut state = fs.state().unwrap();
            state.files.change(NOW, |core| -> Result<()> {
                Tree::of(&mut core.core).put(b"\x01half of a change", b"and no more")?;
                panic!("planted");
            })
        }));
        assert!(panicked.is_err());
        let refused = mkdir(&fs, "after").unwrap_err();
        assert_eq!(refused.kind(), Kind::ReadOnly);
        assert!(refused.to_string().contains("cut off"), "{refused}");
        assert!(as_root(|cx| fs.sync(cx)).is_err());
        // What was there is read.
        let before = Name::new(b"before").unwrap();
        as_root(|cx| fs.lookup(cx, fs.root(), before)).unwrap();
        as_root(|cx| fs.detach(cx)).unwrap_err();
        drop(fs);
        let (report, found) = volumes::check(&CEDAR, dev.clone(), CheckMode::Preen, "").unwrap();
        assert_eq!(report.left(), 0, "{found:?}");
        volumes::clean(&CEDAR, dev.clone(), "").unwrap();
        let again = volumes::attach(&CEDAR, dev, "").unwrap();
        assert!(has(&again, "before") && !has(&again, "after"));
    }
}
