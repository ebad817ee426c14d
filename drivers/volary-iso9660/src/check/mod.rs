//! Checks a volume. Nothing is repaired, because the format is read-only. May use `disk`,
//! `extensions` and `tree`.

use crate::disk::cache::{LOOK_MEMORY, cache};
use crate::disk::descriptors::Descriptors;
use crate::disk::record::Record;
use crate::disk::volume::{Stretch, Volume};
use crate::extensions::choice::Names;
use crate::tree::dir::{Found, Reader};
use crate::tree::node::{Entry, Nodes, Owner};
use crate::tree::path;
use crate::tree::walk::{Place, Visitor, walk};
use std::collections::HashSet;
use std::sync::Arc;
use volary_core::{
    Answer, BlockDevice, Check, CheckReport, Error, Fact, FileKind, Finding, Kind, Name, Progress,
    Result, Severity,
};
use volary_ondisk::Findings;
use volary_ondisk::findings::finding;

/// Checks the whole volume, and reports contradictions.
///
/// # Errors
/// `Corrupt` if there is no valid volume descriptor; `Interrupted`; `Io`.
pub(crate) fn check(
    dev: Arc<dyn BlockDevice>,
    how: &Check,
    report: &mut dyn FnMut(&Finding) -> Answer,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    let size = dev.geometry().size;
    let descriptors = Descriptors::read(&*dev)?;
    let cache = cache(dev, LOOK_MEMORY);
    let volume = Volume::new(&cache, &descriptors, Names::Auto)?;
    let reader = Reader {
        cache: &cache,
        volume: &volume,
    };
    let mut checking = Checking {
        reader,
        findings: Findings::new(how, report),
        progress,
        files: 0,
        dirs: HashSet::new(),
    };
    checking.descriptors(&descriptors, size);
    let nodes = Nodes {
        reader,
        owner: Owner::default(),
        cancel: None,
    };
    walk(&nodes, &mut checking)?;
    checking.path_table(path::table(&reader))?;
    let facts = vec![
        Fact::number("files", checking.files, ""),
        Fact::number("directories", checking.dirs.len() as u64, ""),
    ];
    Ok(CheckReport {
        found: checking.findings.found,
        mended: 0,
        written: 0,
        facts,
    })
}

struct Checking<'a> {
    reader: Reader<'a>,
    findings: Findings<'a>,
    progress: &'a dyn Progress,
    files: u64,
    /// The places where directories begin.
    dirs: HashSet<u64>,
}

impl Checking<'_> {
    fn tell(&mut self, finding: &Finding) {
        self.findings.tell(finding);
    }

    fn descriptors(&mut self, all: &Descriptors, size: u64) {
        let at = crate::disk::ondisk::DESCRIPTORS * crate::disk::ondisk::SECTOR;
        let d = &all.primary;
        let space = self.reader.volume.space;
        if space > size {
            self.tell(&Finding {
                message: format!("the volume has {space} bytes, the device {size}"),
                code: "truncated",
                ..damage(at + 80)
            });
        }
        let agree = d.volume_space_size.agree()
            && d.volume_set_size.agree()
            && d.volume_sequence_number.agree()
            && d.logical_block_size.agree()
            && d.path_table_size.agree();
        if !agree {
            self.tell(&both_orders(at, "primary volume descriptor"));
        }
    }

    /// Compares the path table with the directories.
    ///
    /// # Errors
    /// `Io`.
    fn path_table(&mut self, table: Result<Vec<u8>>) -> Result<()> {
        let table = match table {
            Err(e) if e == Kind::Io => return Err(e),
            Err(e) => {
                self.tell(&Finding {
                    message: e.to_string(),
                    code: "path-table",
                    ..damage(crate::disk::ondisk::DESCRIPTORS * crate::disk::ondisk::SECTOR + 132)
                });
                return Ok(());
            }
            Ok(table) => table,
        };
        let listed: HashSet<u64> = path::records(&table)
            .map(|(raw, _)| path::start(&self.reader, &raw))
            .collect();
        let missing = self.dirs.difference(&listed).count();
        let odd = listed.difference(&self.dirs).count();
        if missing + odd > 0 {
            let message = format!(
                "the path table lacks {missing} directories, and lists {odd} that are not there"
            );
            self.tell(&Finding {
                message,
                code: "path-table",
                ..damage(crate::disk::ondisk::DESCRIPTORS * crate::disk::ondisk::SECTOR + 132)
            });
        }
        Ok(())
    }

    fn own_records(&mut self, at: &Place<'_>, stretch: Stretch) {
        let mut at_record = 0;
        let own = self.reader.record(stretch, &mut at_record).ok().flatten();
        let next = own.and_then(|_| self.reader.record(stretch, &mut at_record).ok().flatten());
        let next = next.filter(Record::is_parent);
        let volume = self.reader.volume;
        let to_itself =
            |r: &Record| volume.start(r) == stretch.start && stretch.start != volume.root;
        let (severity, message) = match next {
            None => (
                Severity::Damage,
                "the directory has no record of the one that holds it",
            ),
            Some(record) if to_itself(&record) => (
                Severity::Note,
                "the directory's record of the one that holds it leads to itself; \
                 the path table is believed",
            ),
            Some(_) => return,
        };
        self.tell(&Finding {
            severity,
            path: Some(at.path()),
            message: message.into(),
            code: "dot-dot",
            ..damage(stretch.start)
        });
    }
}

impl Visitor for Checking<'_> {
    fn dir(&mut self, at: &Place<'_>, stretch: Stretch) -> Result<()> {
        self.dirs.insert(stretch.start);
        self.own_records(at, stretch);
        Ok(())
    }

    fn record(&mut self, at: &Place<'_>, found: &Found) -> Result<()> {
        self.progress
            .progress("directories", self.dirs.len() as u64, 0)?;
        let raw = &found.record.raw;
        if !raw.extent_location.agree() || !raw.data_length.agree() {
            self.tell(&Finding {
                path: Some(at.path()),
                ..both_orders(found.record.at, "directory record")
            });
        }
        Ok(())
    }

    fn entry(&mut self, at: &Place<'_>, entry: &Entry) -> Result<()> {
        if Name::new(&entry.name).is_err() {
            self.tell(&Finding {
                path: Some(at.path()),
                message: "nothing can be called that; it is not shown".into(),
                code: "name",
                ..damage(entry.id.ino.get())
            });
        }
        if entry.kind != FileKind::Dir {
            self.files += 1;
        }
        if let Some(node) = &entry.node {
            let sections = node.sections.clone();
            for section in sections.into_iter().filter(|section| section.len > 0) {
                let here = entry.id.ino.get();
                if let Err(e) = self.reader.check("extent", here, section) {
                    self.tell(&Finding {
                        path: Some(at.path()),
                        message: e.to_string(),
                        code: "extent",
                        ..damage(here)
                    });
                }
            }
        }
        Ok(())
    }

    fn bad(&mut self, at: &Place<'_>, e: Error) -> Result<()> {
        if e == Kind::Io {
            return Err(e);
        }
        let offset = e.as_corrupt().map(|c| c.offset);
        self.tell(&Finding {
            path: Some(at.path()),
            offset,
            message: e.to_string(),
            code: "record",
            ..damage(0)
        });
        Ok(())
    }

    fn again(&mut self, at: &Place<'_>, start: u64) -> Result<()> {
        self.tell(&Finding {
            path: Some(at.path()),
            message: "the directory is in another place as well".into(),
            code: "twice",
            ..damage(start)
        });
        Ok(())
    }
}

/// Returns a finding that still needs a code and a message.
fn damage(offset: u64) -> Finding {
    finding(Severity::Damage, offset, "")
}

fn both_orders(at: u64, what: &str) -> Finding {
    Finding {
        severity: Severity::Note,
        message: format!("numbers of the {what} differ in their two byte orders"),
        code: "byte-order",
        ..damage(at)
    }
}
