//! Copies of a remote's files: no cut leaves one that counts as whole and is not.

use super::caught::few;
use super::cuts::volume;
use super::script::NOW;
use super::subject::{Volume, must_be_clean};
use crate::CEDAR;
use crate::change::nodes::Nodes;
use crate::mistakes::plant;
use crate::name_table::entry::Part;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    Attach, BlockDevice, Cancel, Check, CheckMode, Create, Cred, Ctx, Format, Fs, Kind, Make, Mode,
    Name, Options, Quiet, Remote, Result, SetAttr, Time,
};
use volary_sim::rng::{Rng, pattern};
use volary_sim::{Cow, Subject, Traced, crash_points};

/// The remote's files, and how long each is at each time it is written.
const FILES: [(&str, [usize; 2]); 3] = [("a", [3000, 700]), ("b", [9000, 9000]), ("c", [0, 40])];

/// Does something as root, `secs` after [`NOW`].
fn later<T>(secs: i64, act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: Time::new(NOW.secs + secs, 0),
        cancel: &cancel,
    })
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn content(file: usize, turn: usize) -> Vec<u8> {
    let (_, lens) = FILES[file];
    pattern((file * 2 + turn) as u64, lens[turn])
}

/// Writes the remote's files, for the `turn`-th time.
fn write_remote(fs: &Fs, turn: usize) {
    later(turn as i64 * 10, |cx| {
        for (file, (text, _)) in FILES.iter().enumerate() {
            let set = SetAttr::default();
            let made = fs.create(cx, fs.root(), name(text), Create::Truncate, &set);
            let (_, open) = made.unwrap();
            fs.write(cx, open, Some(0), &content(file, turn)).unwrap();
            fs.close(cx, open).unwrap();
        }
    });
}

fn remote() -> Fs {
    let dev = Arc::new(MemDevice::new(700 << 10));
    let make = Make {
        now: NOW,
        options: Options::parse("page=512,name-table=48k,log=186k"),
        ..Make::default()
    };
    CEDAR.make(dev.clone(), "cedar", &make).unwrap();
    CEDAR.attach(dev, &Attach::default()).unwrap()
}

fn over(dev: Arc<dyn BlockDevice>, attach: &str, far: &Fs) -> Result<Fs> {
    let how = Attach {
        memory: 4 << 20,
        options: Options::parse(attach),
        ..Attach::default()
    };
    let far = far.clone();
    CEDAR.attach_over(dev, &how, Remote::new("far", move || Ok(far.clone())))
}

/// Reads a file.
fn read(fs: &Fs, secs: i64, text: &str) -> Result<Vec<u8>> {
    later(secs, |cx| {
        let found = fs.lookup(cx, fs.root(), name(text))?;
        let open = fs.open(cx, found.node, Mode::Read)?;
        let mut bytes = vec![0; found.attr.size as usize];
        let read = fs.read(cx, open, 0, &mut bytes);
        fs.close(cx, open)?;
        bytes.truncate(read?);
        Ok(bytes)
    })
}

/// What is there while the remote is not is whole, or not there.
fn look(volume: &Volume, dev: Arc<dyn BlockDevice>) -> std::result::Result<(), String> {
    must_be_clean(dev.clone())?;
    let fs = volume.attach(dev, true)?;
    for (file, (text, _)) in FILES.iter().enumerate() {
        match read(&fs, 0, text) {
            Err(e) if e == Kind::NotFound || e == Kind::Io => {}
            Err(e) => return Err(format!("{text}: {e}")),
            Ok(bytes) if (0..2).any(|turn| bytes == content(file, turn)) => {}
            Ok(bytes) => return Err(format!("{text}: {} bytes it never had", bytes.len())),
        }
    }
    Ok(())
}

/// Looks at states of a cache of files that are fetched, change, and are fetched again.
///
/// # Errors
/// What is wrong with the first that is.
pub(super) fn copy(volume: Volume) -> std::result::Result<(), String> {
    let volume = Volume {
        make: "page=512,name-table=48k,log=186k,cache=far",
        warm: super::script::Script(Vec::new()),
        ..volume
    };
    let traced = Arc::new(Traced::new(volume.make()?));
    plant(volume.mistake);
    let far = remote();
    let fs = over(traced.clone(), volume.attach, &far).map_err(|e| e.to_string())?;
    traced.begin(1);
    for turn in 0..2 {
        write_remote(&far, turn);
        for (file, (text, _)) in FILES.iter().enumerate() {
            let bytes = read(&fs, turn as i64 * 10 + 5, text).map_err(|e| e.to_string())?;
            if bytes != content(file, turn) {
                return Err(format!("{text} is not what it is on the remote"));
            }
        }
        later(0, |cx| fs.sync(cx)).map_err(|e| e.to_string())?;
    }
    traced.end(1);
    later(0, |cx| fs.detach(cx)).map_err(|e| e.to_string())?;
    let mut rng = Rng::new(11);
    for point in crash_points(&traced.take(), false) {
        for choice in few(point.in_flight.len(), &mut rng) {
            let cow = Arc::new(Cow::new(point.disk_after(&choice)));
            volume.recover(cow.clone())?;
            look(&volume, cow)?;
        }
    }
    Ok(())
}

#[test]
fn a_copy_that_is_cut_off_never_counts_as_whole() {
    for attach in ["", "commit=0", "data=through,commit=0"] {
        copy(volume(attach)).unwrap();
    }
}

#[test]
fn a_cache_that_contradicts_itself_is_mended_and_fetches_again() {
    let dev = Arc::new(MemDevice::new(700 << 10));
    let make = Make {
        now: NOW,
        options: Options::parse("page=512,name-table=48k,log=186k,cache=far"),
        ..Make::default()
    };
    CEDAR.make(dev.clone(), "cedar", &make).unwrap();
    let far = remote();
    write_remote(&far, 0);
    let fs = over(dev.clone(), "", &far).unwrap();
    read(&fs, 0, "a").unwrap();
    read(&fs, 0, "b").unwrap();
    later(0, |cx| fs.detach(cx)).unwrap();
    let how = crate::recover::How {
        read_only: false,
        ..crate::look::info::LOOK
    };
    let mut files = crate::recover::open(dev.clone(), &how).unwrap().0;
    files.core.begin().unwrap();
    let uid = |files: &mut crate::change::files::Files, text: &str| {
        let found = Nodes::of(files)
            .find(crate::name_table::entry::ROOT_UID, text.as_bytes())
            .unwrap();
        found.unwrap().1.uid()
    };
    let (a, b) = (uid(&mut files, "a"), uid(&mut files, "b"));
    files
        .change(NOW, |c| {
            // One loses a page, the other says that it is nobody's copy.
            let (place, mut head) = Nodes::of(c).home(a)?;
            head.runs[0].len -= 1;
            Nodes::of(c).keep(&place, head)?;
            let (place, mut head) = Nodes::of(c).home(b)?;
            head.far = None;
            Nodes::of(c).keep(&place, head)?;
            let (place, mut root) = Nodes::of(c).home(crate::name_table::entry::ROOT_UID)?;
            Nodes::of(c).set_parts(&mut root, Part::Xattrs, b"")?;
            Nodes::of(c).keep(&place, root)
        })
        .unwrap();
    files.core.leave(NOW).unwrap();
    let codes = check(&dev, CheckMode::Look);
    assert!(
        codes.contains(&"remote") && codes.contains(&"size"),
        "{codes:?}"
    );
    check(&dev, CheckMode::Mend);
    assert_eq!(check(&dev, CheckMode::Look), Vec::<&str>::new());
    // The same remote, attached again.
    let far = remote();
    write_remote(&far, 0);
    let fs = over(dev, "", &far).unwrap();
    for (file, text) in ["a", "b"].into_iter().enumerate() {
        assert_eq!(read(&fs, 20, text).unwrap(), content(file, 0));
    }
}

fn check(dev: &Arc<MemDevice>, mode: CheckMode) -> Vec<&'static str> {
    let how = Check {
        mode,
        now: NOW,
        options: Options::new(),
    };
    let mut codes = Vec::new();
    let mut tell = |f: &volary_core::Finding| {
        codes.push(f.code);
        volary_core::Answer::Yes
    };
    CEDAR.check(dev.clone(), &how, &mut tell, &Quiet).unwrap();
    codes
}
