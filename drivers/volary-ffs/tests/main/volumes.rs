//! Fresh volumes for tests.

use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    Answer, Attach, BlockDevice, Cancel, Check, CheckMode, CheckReport, Cred, Ctx, Finding, Format,
    Fs, Make, Options, Quiet, Result, Time,
};
use volary_ffs::FFS;
use volary_testkit::Fresh;

/// When volumes are made, and the time of calls.
pub(crate) const NOW: Time = Time::from_secs(1_700_000_000);

/// What volume to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) kind: &'static str,
    /// Bytes.
    pub(crate) len: u64,
    /// Options of mkfs.
    pub(crate) make: &'static str,
    /// Options of the mount.
    pub(crate) attach: &'static str,
}

impl Shape {
    pub(crate) const fn new(kind: &'static str, len: u64) -> Self {
        Self {
            kind,
            len,
            make: "",
            attach: "",
        }
    }

    pub(crate) const fn made(self, make: &'static str) -> Self {
        Self { make, ..self }
    }

    /// Whether blocks have more than one fragment.
    pub(crate) fn has_fragments(&self) -> bool {
        let whole = ["block=8192,fragment=8192", "block=65536,fragment=65536"];
        !whole.iter().any(|sizes| self.make.contains(sizes))
    }

    pub(crate) fn name(&self) -> String {
        let size = format!("{} of {} KiB", self.kind, self.len >> 10);
        let parts = [&size, self.make, self.attach];
        let parts: Vec<_> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        parts.join(" ")
    }

    /// Makes an empty one in memory.
    pub(crate) fn device(&self) -> Arc<MemDevice> {
        let dev = Arc::new(MemDevice::new(self.len));
        make(&(dev.clone() as Arc<dyn BlockDevice>), self.kind, self.make);
        dev
    }

    /// A fresh volume that our check looks at when all is done.
    pub(crate) fn fresh(&self) -> Fresh {
        let dev = self.device();
        let options = self.attach;
        let (again, read_only, image) = (dev.clone(), dev.clone(), dev.clone());
        Fresh::new(attach(dev, options))
            .reattach(move || attach(again.clone(), options))
            .read_only(move || attach_with(read_only.clone(), options, true).expect("attach"))
            .checked_by(move || clean(image.clone()))
    }
}

/// Makes a volume.
pub(crate) fn make(dev: &Arc<dyn BlockDevice>, kind: &str, options: &str) {
    let make = Make {
        now: NOW,
        options: Options::parse(options),
        ..Make::default()
    };
    FFS.make(dev.clone(), kind, &make).expect("mkfs");
}

pub(crate) fn attach(dev: Arc<dyn BlockDevice>, options: &str) -> Fs {
    attach_with(dev, options, false).expect("attach")
}

pub(crate) fn attach_with(dev: Arc<dyn BlockDevice>, options: &str, read_only: bool) -> Result<Fs> {
    let how = Attach {
        read_only,
        options: Options::parse(options),
        ..Attach::default()
    };
    FFS.attach(dev, &how)
}

/// Does something as root at [`NOW`].
pub(crate) fn as_root<T>(act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: NOW,
        cancel: &cancel,
    })
}

/// Checks a volume; the report, and all findings as lines.
pub(crate) fn check(dev: Arc<dyn BlockDevice>, mode: CheckMode) -> (CheckReport, Vec<String>) {
    let how = Check {
        mode,
        now: NOW,
        options: Options::new(),
    };
    let mut found = Vec::new();
    let mut tell = |f: &Finding| {
        found.push(format!("{}: {}", f.code, f.message));
        Answer::Yes
    };
    let report = FFS.check(dev, &how, &mut tell, &Quiet).expect("check");
    (report, found)
}

/// Holds if our check finds nothing.
pub(crate) fn clean(dev: Arc<dyn BlockDevice>) -> std::result::Result<(), String> {
    let (report, found) = check(dev, CheckMode::Look);
    match report.found {
        0 => Ok(()),
        _ => Err(found.join("\n")),
    }
}
