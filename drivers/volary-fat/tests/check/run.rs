//! Running a check on bytes, and what must hold after.

use crate::check::image::Image;
use crate::check::reader::{Files, files};
use crate::tools::run;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use volary_core::{
    Answer, BlockDevice, Check, CheckMode, CheckReport, Finding, Format, Geometry, Kind, Options,
    Quiet, Result, Severity, Time,
};
use volary_fat::FAT;

/// What a check did.
pub(crate) struct Checked {
    pub(crate) report: Result<CheckReport>,
    pub(crate) findings: Vec<Finding>,
    /// All writes, in order: offset and bytes.
    pub(crate) writes: Writes,
    pub(crate) bytes: Vec<u8>,
    /// Requests to read.
    pub(crate) reads: usize,
}

impl Checked {
    pub(crate) fn has(&self, code: &str) -> bool {
        self.findings.iter().any(|f| f.code == code)
    }

    /// Returns the codes of all findings but notes.
    pub(crate) fn codes(&self) -> Vec<&'static str> {
        let found = self.findings.iter();
        let found = found.filter(|f| f.severity != Severity::Note);
        found.map(|f| f.code).collect()
    }

    pub(crate) fn wrote(&self) -> bool {
        !self.writes.is_empty()
    }
}

/// Bytes, and what was written to them. Plain, so that thousands of checks take
/// no time.
pub(crate) struct Ram(Mutex<(Vec<u8>, Writes)>, AtomicUsize);

impl Ram {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(Mutex::new((bytes.to_vec(), Vec::new())), 0.into())
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().0.clone()
    }
}

/// Offsets and bytes.
type Writes = Vec<(usize, Vec<u8>)>;

impl BlockDevice for Ram {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.0.lock().unwrap().0.len() as u64,
            sector: 512,
            read_only: false,
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.1.fetch_add(1, Relaxed);
        let held = self.0.lock().unwrap();
        let at = usize::try_from(offset).unwrap();
        let bytes = held.0.get(at..at + buf.len()).ok_or(Kind::Invalid)?;
        buf.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut held = self.0.lock().unwrap();
        let at = usize::try_from(offset).unwrap();
        held.0
            .get_mut(at..at + data.len())
            .ok_or(Kind::Invalid)?
            .copy_from_slice(data);
        held.1.push((at, data.to_vec()));
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

/// Checks a copy of the bytes.
pub(crate) fn check(bytes: &[u8], mode: CheckMode, options: &str) -> Checked {
    let dev = Arc::new(Ram::new(bytes));
    let how = Check {
        mode,
        now: Time::from_secs(1_700_000_000),
        options: Options::parse(options),
    };
    let mut findings = Vec::new();
    let mut tell = |f: &Finding| {
        findings.push(f.clone());
        Answer::Yes
    };
    let report = FAT.check(dev.clone(), &how, &mut tell, &Quiet);
    let (bytes, writes) = std::mem::take(&mut *dev.0.lock().unwrap());
    Checked {
        report,
        findings,
        writes,
        bytes,
        reads: dev.1.load(Relaxed),
    }
}

/// Mends, and sees that a second check finds and writes nothing, that fsck.fat
/// is content, and that what could be read before can be read after.
pub(crate) fn mend(bytes: &[u8], about: &str) -> Checked {
    mend_with(bytes, "", about)
}

/// Mends with options. fsck.fat is not asked, as it takes the paper's layout for damage.
pub(crate) fn mend_with(bytes: &[u8], options: &str, about: &str) -> Checked {
    let done = check(bytes, CheckMode::Mend, options);
    let report = done.report.as_ref();
    let report = report.unwrap_or_else(|e| panic!("{about}: {e}"));
    assert_eq!(report.left(), 0, "{about}: {}", show(&done.findings));
    let again = check(&done.bytes, CheckMode::Mend, options);
    let found: Vec<_> = again
        .findings
        .iter()
        .filter(|f| f.severity != Severity::Note)
        .collect();
    assert!(
        found.is_empty(),
        "{about}: second check: {}, after {}",
        show(&again.findings),
        show(&done.findings)
    );
    assert!(!again.wrote(), "{about}: the second check writes");
    if options != "unix=dosfs" {
        assert_clean(&done.bytes, about, &done.findings);
    }
    done
}

/// Sees that fsck.fat has nothing to mend.
pub(crate) fn assert_clean(bytes: &[u8], about: &str, findings: &[Finding]) {
    let file = tempfile::NamedTempFile::new_in(temp()).unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    if let Some(answer) = run("fsck.fat", &["-n", file.path().to_str().unwrap()]) {
        let kept = format!("{}/volary-fsck-failed.img", temp().display());
        if answer.code != 0 {
            std::fs::write(&kept, bytes).unwrap();
        }
        assert_eq!(
            answer.code,
            0,
            "{about}: {}\n{}\nkept: {kept}",
            answer.text,
            show(findings)
        );
    }
}

/// Returns a place for images, in memory where there is one.
fn temp() -> std::path::PathBuf {
    let shm = std::path::Path::new("/dev/shm");
    if shm.is_dir() {
        shm.into()
    } else {
        std::env::temp_dir()
    }
}

/// Sees that each file that could be read is there, under any name, or is named.
pub(crate) fn assert_kept(before: &Files, done: &Checked, about: &str) {
    let after = files(&Image::new(done.bytes.clone()).unwrap());
    assert_kept_in(before, &after, &done.findings, about);
}

/// The same, of two sets of files.
pub(crate) fn assert_kept_in(before: &Files, after: &Files, findings: &[Finding], about: &str) {
    for (path, bytes) in before {
        // What was saved as a lost chain is as long as its clusters.
        let saved = path.starts_with("/lost+found/");
        let same = |b: &Vec<u8>| b == bytes || saved && is_nearly(bytes, b);
        let there = bytes.is_empty() || after.values().any(same);
        assert!(
            there || is_named(path, findings),
            "{about}: {path} ({} bytes) is lost, and not named in {}",
            bytes.len(),
            show(findings)
        );
    }
}

/// Returns whether one begins with the other, and has less than a cluster more.
fn is_nearly(a: &[u8], b: &[u8]) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    !short.is_empty() && long.starts_with(short) && long.len() - short.len() < 512
}

/// Returns whether a finding names the file or a directory that it is in.
fn is_named(path: &str, findings: &[Finding]) -> bool {
    findings.iter().any(|f| {
        let named = f
            .path
            .as_ref()
            .map(|p| String::from_utf8_lossy(p).to_lowercase());
        let path = path.to_lowercase();
        named.is_some_and(|n| {
            path == n || path.starts_with(&format!("{n}/")) || n == "/" && f.code != "lost-chain"
        }) || f.message.to_lowercase().contains(&path)
    })
}

/// Findings, one a line.
pub(crate) fn show(findings: &[Finding]) -> String {
    let line = |f: &Finding| {
        let path = f
            .path
            .as_ref()
            .map(|p| String::from_utf8_lossy(p).into_owned());
        format!(
            "\n  {}: {path:?} {:?}: {} [{}]",
            f.code, f.offset, f.message, f.repair
        )
    };
    findings.iter().map(line).collect()
}
