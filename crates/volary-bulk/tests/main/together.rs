//! Files of the host that are read many at the same time: as if they were read one by one.

use crate::volumes::{Got, grow, run, session};
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use volary_bulk::{BulkFileRead, Consumer, File, Options, Part, Source};
use volary_core::{Caps, Cred, Fs, Kind};
use volary_host::HostOptions;
use volary_session::{Volume, VolumeOptions};
use volary_testkit::readable::Content;
use volary_testkit::volumes::{NOW, as_root};

const MIB: u64 = 1 << 20;

/// How the directory is attached: with rings and without, by handle and not.
fn each_way(dir: &Path, test: impl Fn(&str, Fs)) {
    for rings in [true, false] {
        for by_handle in [true, false] {
            let options = HostOptions {
                rings,
                by_handle,
                ..HostOptions::default()
            };
            let what = format!("rings: {rings}, by handle: {by_handle}");
            test(&what, volary_host::attach(dir, &options).expect("attach"));
        }
    }
}

/// More files than are read at the same time.
fn many(dir: &Path) {
    for number in 0..300_usize {
        let bytes = number.to_le_bytes().repeat(number % 7 * 100);
        std::fs::write(dir.join(format!("many{number}")), bytes).expect("write");
    }
}

#[test]
fn all_files_of_a_tree_are_as_an_ordinary_walk_finds_them() {
    let dir = tempfile::tempdir().expect("a directory");
    grow(dir.path());
    many(dir.path());
    each_way(dir.path(), |what, fs| {
        let content = as_root(|cx| Content::read(&fs, cx)).expect("an ordinary walk");
        for (memory, workers) in [(64 * MIB, 1), (MIB, 3)] {
            let options = Options {
                memory,
                workers,
                ..Options::default()
            };
            let session = session(fs.clone());
            let got = run(options, &[Source::new(session.clone()).live()], &[&session]);
            assert!(got.failed.is_empty(), "{what}: {:?}", got.failed);
            assert!(got.content == content, "{what}");
        }
    });
}

/// A path, and the content or why there is none.
type Heard = (Vec<u8>, Result<Vec<u8>, Kind>);

/// Changes the tree once it is listed and before anything is read.
struct Changes<'a> {
    dir: &'a Path,
    told: parking_lot::Mutex<Vec<Heard>>,
}

impl Consumer for Changes<'_> {
    fn found(&self, _: u64, _: u64) {
        let at = |name| self.dir.join(name);
        std::fs::write(at("many10"), b"another content").expect("write");
        std::fs::write(at("many11"), b"").expect("write");
        for name in ["many12", "many13", "many14"] {
            std::fs::remove_file(at(name)).expect("remove");
        }
        std::os::unix::fs::symlink(at("many20"), at("many13")).expect("symlink");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, at("many14"), mode).expect("mkfifo");
    }

    fn take(&self, file: &File<'_>, part: Part<'_>) -> ControlFlow<()> {
        let told = match part {
            Part::Whole(bytes) => Ok(bytes.to_vec()),
            Part::Failed(e) => Err(e.kind()),
            _ => return ControlFlow::Continue(()),
        };
        self.told.lock().push((file.path.to_vec(), told));
        ControlFlow::Continue(())
    }
}

#[test]
fn what_changes_or_is_swapped_before_it_is_read_is_read_anew_or_fails() {
    let dir = tempfile::tempdir().expect("a directory");
    each_way(dir.path(), |what, fs| {
        for entry in std::fs::read_dir(dir.path()).expect("list") {
            std::fs::remove_file(entry.expect("entry").path()).expect("remove");
        }
        many(dir.path());
        let changes = Changes {
            dir: dir.path(),
            told: parking_lot::Mutex::default(),
        };
        let source = Source::new(session(fs)).live();
        BulkFileRead::new(Options::default())
            .expect("options")
            .run(&[source], &changes);
        let told = changes.told.into_inner();
        assert_eq!(told.len(), 300, "{what}");
        for (path, content) in told {
            let name = std::str::from_utf8(&path).expect("a name");
            match name {
                "/many10" => assert_eq!(content, Ok(b"another content".to_vec()), "{what}"),
                "/many11" => assert_eq!(content, Ok(Vec::new()), "{what}"),
                // A number that is used again at once is another node.
                "/many12" | "/many13" | "/many14" => {
                    assert_eq!(content, Err(Kind::Stale), "{what}: {name}");
                }
                _ => {
                    let bytes = std::fs::read(dir.path().join(&name[1..])).expect("read");
                    assert!(content == Ok(bytes), "{what}: {name}");
                }
            }
        }
    });
}

#[test]
fn files_without_the_right_to_read_fail_and_no_others() {
    let dir = tempfile::tempdir().expect("a directory");
    let mode = |path: &Path, mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, mode).expect("chmod");
    };
    many(dir.path());
    mode(dir.path(), 0o755);
    for number in 0..300 {
        let secret = number % 50 == 7;
        mode(
            &dir.path().join(format!("many{number}")),
            if secret { 0o600 } else { 0o644 },
        );
    }
    each_way(dir.path(), |what, fs| {
        if !fs.caps().has(Caps::MODES) {
            return;
        }
        let options = VolumeOptions::new("test", || NOW);
        // Nobody owns these: not even who runs the test.
        let session = Volume::new(fs, options).session(Cred::new(54_321, 54_321));
        let source = Source::new(session.clone()).live();
        let got: Got = run(Options::default(), &[source], &[&session]);
        let failed: Vec<_> = got.failed.into_values().collect();
        assert_eq!(failed, [Kind::Access; 6], "{what}");
        assert_eq!(got.content.0.len(), 294, "{what}");
    });
}
