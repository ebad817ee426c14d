//! Volumes for tests of a driver: made in memory, attached and checked through its [`Format`].

use crate::Fresh;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    Answer, Attach, BlockDevice, Cancel, Check, CheckMode, CheckReport, Cookie, Cred, Ctx, DirBuf,
    DirEntry, Finding, Format, Fs, Make, Mode, Name, Options, Quiet, Result, Time,
};

/// When volumes are made, and the time of calls: an even second, as FAT keeps no others.
pub const NOW: Time = Time::from_secs(1_700_000_000);

/// What volume to make.
#[derive(Clone, Copy)]
pub struct Shape {
    format: &'static dyn Format,
    /// What [`Format::make`] calls it.
    pub kind: &'static str,
    /// Bytes.
    pub len: u64,
    /// Bytes of a sector of the device.
    pub sector: u32,
    /// Options of mkfs.
    pub make: &'static str,
    /// Options of the mount.
    pub attach: &'static str,
}

impl Shape {
    /// `len` bytes in sectors of 512, made and attached without options.
    pub const fn new(format: &'static dyn Format, kind: &'static str, len: u64) -> Self {
        Self {
            format,
            kind,
            len,
            sector: 512,
            make: "",
            attach: "",
        }
    }

    /// With these options of mkfs.
    #[must_use]
    pub const fn made(self, make: &'static str) -> Self {
        Self { make, ..self }
    }

    /// With these options of the mount.
    #[must_use]
    pub const fn attached(self, attach: &'static str) -> Self {
        Self { attach, ..self }
    }

    /// With this many bytes.
    #[must_use]
    pub const fn long(self, len: u64) -> Self {
        Self { len, ..self }
    }

    /// In sectors of this many bytes.
    #[must_use]
    pub const fn sectors(self, sector: u32) -> Self {
        Self { sector, ..self }
    }

    /// Returns its format.
    pub fn format(&self) -> &'static dyn Format {
        self.format
    }

    /// Returns a name made of all in which volumes of a test can differ.
    pub fn name(&self) -> String {
        let size = format!("{} of {} KiB", self.kind, self.len >> 10);
        let sectors = match self.sector {
            512 => String::new(),
            n => format!("in sectors of {n}"),
        };
        let parts = [&size, &sectors, self.make, self.attach];
        let parts: Vec<_> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        parts.join(" ")
    }

    /// Returns an empty one in memory.
    pub fn device(&self) -> Arc<MemDevice> {
        let dev = Arc::new(MemDevice::new(self.len).with_sector(self.sector));
        make(self.format, dev.clone(), self.kind, self.make);
        dev
    }

    /// Returns a fresh volume that the driver's own check looks at when all is done.
    pub fn fresh(&self) -> Fresh {
        let dev = self.device();
        let (format, image) = (self.format, dev.clone());
        self.fresh_on(dev)
            .checked_by(move || clean(format, image.clone(), ""))
    }

    /// Returns a fresh volume on a device that holds an empty one, looked at by nobody.
    pub fn fresh_on(&self, dev: Arc<MemDevice>) -> Fresh {
        let (again, for_reading) = (dev.clone(), dev.clone());
        let (format, options) = (self.format, self.attach);
        Fresh::new(attach(format, dev.clone(), options).expect("attach"))
            .on(dev)
            .reattach(move || attach(format, again.clone(), options).expect("attach"))
            .read_only(move || {
                attach_read_only(format, for_reading.clone(), options).expect("attach for reading")
            })
    }
}

/// Returns bytes as a device.
pub fn device(bytes: &[u8]) -> Arc<dyn BlockDevice> {
    Arc::new(MemDevice::from_vec(bytes.to_vec()))
}

/// Makes a volume at [`NOW`].
pub fn make(format: &dyn Format, dev: Arc<dyn BlockDevice>, kind: &str, options: &str) {
    let how = Make {
        now: NOW,
        options: Options::parse(options),
        ..Make::default()
    };
    let made = format.make(dev, kind, &how);
    made.unwrap_or_else(|e| panic!("mkfs of {kind} {options}: {e}"));
}

/// Attaches a volume.
pub fn attach(format: &dyn Format, dev: Arc<dyn BlockDevice>, options: &str) -> Result<Fs> {
    let how = Attach {
        options: Options::parse(options),
        ..Attach::default()
    };
    format.attach(dev, &how)
}

/// Attaches a volume for reading.
pub fn attach_read_only(
    format: &dyn Format,
    dev: Arc<dyn BlockDevice>,
    options: &str,
) -> Result<Fs> {
    let how = Attach {
        read_only: true,
        options: Options::parse(options),
        ..Attach::default()
    };
    format.attach(dev, &how)
}

/// Does something as root at [`NOW`].
pub fn as_root<T>(act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: NOW,
        cancel: &cancel,
    })
}

/// Asks all that can be asked of `most` nodes at most, which paths from the root lead to. Errors are
/// answers: the volume may be damaged. Calls `each` with each entry.
///
/// # Panics
/// If an open cannot be closed.
pub fn look(fs: &Fs, most: usize, mut each: impl FnMut(&DirEntry<'_>)) {
    as_root(|cx| {
        let mut todo = vec![fs.root()];
        for _ in 0..most {
            let Some(node) = todo.pop() else { break };
            let _ = fs.getattr(cx, node);
            let _ = fs.readlink(cx, node);
            let _ = fs.parent(cx, node);
            for name in fs.listxattr(cx, node).unwrap_or_default() {
                let _ = fs.getxattr(cx, node, &name);
            }
            let Ok(open) = fs.open(cx, node, Mode::Read) else {
                continue;
            };
            let mut out = DirBuf::new(1000, 1 << 16, true);
            let _ = fs.readdir(cx, open, Cookie::START, &mut out);
            for entry in out.iter() {
                if let Ok(name) = Name::new(entry.name) {
                    let _ = fs.lookup(cx, node, name);
                }
                each(&entry);
                todo.push(entry.node);
            }
            let mut buf = [0; 20_000];
            for offset in [0, 1, 1 << 30] {
                let _ = fs.read(cx, open, offset, &mut buf);
            }
            let _ = fs.extents(cx, open, 0, u64::MAX, &mut Vec::new());
            fs.close(cx, open).expect("close");
        }
        let _ = fs.statfs(cx);
    });
}

/// Checks a volume, with yes to every question; the report, and all findings as lines of code and message.
pub fn check(
    format: &dyn Format,
    dev: Arc<dyn BlockDevice>,
    mode: CheckMode,
    options: &str,
) -> Result<(CheckReport, Vec<String>)> {
    let how = Check {
        mode,
        now: NOW,
        options: Options::parse(options),
    };
    let mut found = Vec::new();
    let mut tell = |f: &Finding| {
        found.push(format!("{}: {}", f.code, f.message));
        Answer::Yes
    };
    let report = format.check(dev, &how, &mut tell, &Quiet)?;
    Ok((report, found))
}

/// Returns what a dump prints of a topic, and of what follows the first blank.
///
/// # Panics
/// If it fails.
pub fn dump(format: &dyn Format, dev: &Arc<dyn BlockDevice>, what: &str) -> String {
    let mut text = String::new();
    let what: Vec<String> = what.splitn(2, ' ').map(Into::into).collect();
    format
        .dump(dev.clone(), &what, &mut text)
        .unwrap_or_else(|e| panic!("dump {what:?}: {e}"));
    text
}

/// Maps a volume into one cell and into many. Returns the bytes that nothing is known of.
///
/// # Panics
/// If a map fails, or has not every byte of the device once.
pub fn lost_in_map(format: &dyn Format, dev: &Arc<dyn BlockDevice>) -> u64 {
    let lost = [1, 640].map(|cells| {
        let map = format.map(dev.clone(), cells).expect("a map");
        let all = map.cells.iter();
        let sum: u64 = all
            .map(|c| c.system + c.dir + c.file + c.broken + c.bad + c.free + c.lost)
            .sum();
        assert_eq!(sum, dev.geometry().size, "{cells} cells");
        map.cells.iter().map(|cell| cell.lost).sum::<u64>()
    });
    lost[0].max(lost[1])
}

/// Makes a temporary directory, in memory where the host has such.
///
/// # Panics
/// If it cannot be made.
pub fn scratch() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let dir = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    dir.expect("a temporary directory")
}

/// Holds if the driver's own check finds nothing.
pub fn clean(
    format: &dyn Format,
    dev: Arc<dyn BlockDevice>,
    options: &str,
) -> std::result::Result<(), String> {
    match check(format, dev, CheckMode::Look, options) {
        Ok((report, _)) if report.found == 0 => Ok(()),
        Ok((_, found)) => Err(found.join("\n")),
        Err(e) => Err(e.to_string()),
    }
}
