//! Many ranges of many files in one call: in the order in which they lie, and those close to each other at once.

use crate::error::Failure;
use crate::file::room;
use std::collections::HashMap;
use volary::{
    Cred, ExtentPlace, FileKind, Follow, Kind, Mode, OpenId, Result as VolaryResult, Session,
    escape,
};

/// Files that are open at once.
const FILES: usize = 512;
/// Ranges of a file that are at most so far apart share a read, in bytes.
const GAP: u64 = 64 << 10;
/// The largest read for several ranges, in bytes.
const READ_MAX: u64 = 8 << 20;

/// A range that is asked for, as fsspec has them: an end that is not given is the file's, and what is negative counts
/// from there.
pub(crate) struct Asked<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
}

/// What was read of each, in the order in which it was asked for.
pub(crate) type Answers = Vec<Result<Vec<u8>, Failure>>;

/// Reads all that is asked for.
pub(crate) fn read(vol: &volary::Vol, asked: &[Asked<'_>]) -> Answers {
    let reading = Reading {
        session: vol.volume().trusted_session(Cred::root()),
        name: vol.volume().name(),
    };
    let mut files: Vec<(&[u8], Vec<usize>)> = Vec::new();
    let mut known: HashMap<&[u8], usize> = HashMap::new();
    for (index, one) in asked.iter().enumerate() {
        let at = *known.entry(one.path).or_insert_with(|| {
            files.push((one.path, Vec::new()));
            files.len() - 1
        });
        if let Some((_, wanted)) = files.get_mut(at) {
            wanted.push(index);
        }
    }
    let mut answers: Vec<Option<Result<Vec<u8>, Failure>>> = Vec::new();
    answers.resize_with(asked.len(), || None);
    for batch in files.chunks(FILES) {
        let mut opened = Vec::new();
        for (path, wanted) in batch {
            match reading.open(path, wanted, asked) {
                Ok(file) => opened.push(file),
                Err(e) => {
                    for &index in wanted {
                        answer(&mut answers, index, Err(reading.failed(path, &e)));
                    }
                }
            }
        }
        opened.sort_by_key(|file| file.place);
        for file in opened {
            reading.read(&file, &mut answers);
            // Nothing was written that its end could tell of.
            let _ = reading.session.close(file.open);
        }
    }
    let missing = || Err(Failure::new(Kind::Io, "a range was not read"));
    answers
        .into_iter()
        .map(|one| one.unwrap_or_else(missing))
        .collect()
}

fn answer(
    answers: &mut [Option<Result<Vec<u8>, Failure>>],
    index: usize,
    with: Result<Vec<u8>, Failure>,
) {
    if let Some(place) = answers.get_mut(index) {
        *place = Some(with);
    }
}

/// Bytes of a file that one answer is.
struct Part {
    index: usize,
    start: u64,
    end: u64,
}

/// A file with ranges that are to be read.
struct Opened<'a> {
    path: &'a [u8],
    open: OpenId,
    /// Where its first byte lies that is wanted; what lies nowhere comes first.
    place: u64,
    /// In order.
    parts: Vec<Part>,
}

struct Reading<'a> {
    session: Session,
    name: &'a str,
}

impl Reading<'_> {
    fn open<'a>(
        &self,
        path: &'a [u8],
        wanted: &[usize],
        asked: &[Asked<'_>],
    ) -> VolaryResult<Opened<'a>> {
        let walked = if path.is_empty() { b"/" } else { path };
        let found = self.session.walk(walked, Follow::Yes)?;
        if found.attr.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        let open = self.session.open_seen(&found.attr, None, Mode::Read)?;
        let size = found.attr.size;
        let part = |&index: &usize| {
            let one = asked.get(index)?;
            let start = from_end(one.start.unwrap_or(0), size);
            let end = one.end.map_or(size, |end| from_end(end, size));
            Some(Part {
                index,
                start,
                end: end.max(start),
            })
        };
        let mut parts: Vec<Part> = wanted.iter().filter_map(part).collect();
        parts.sort_by_key(|part| (part.start, part.end));
        let first = parts.first().map_or(0, |part| part.start);
        Ok(Opened {
            path,
            place: self.place(open, first),
            open,
            parts,
        })
    }

    /// Returns where a byte of a file lies. Of a volume that does not tell, all lie at the same place.
    fn place(&self, open: OpenId, offset: u64) -> u64 {
        let mut extents = Vec::new();
        let told = self.session.extents(open, offset, 1, &mut extents);
        match (told, extents.first().map(|extent| extent.place)) {
            (Ok(()), Some(ExtentPlace::Device(at))) => at,
            _ => 0,
        }
    }

    /// Reads the ranges of a file, those close to each other at once.
    fn read(&self, file: &Opened<'_>, answers: &mut [Option<Result<Vec<u8>, Failure>>]) {
        let mut rest = file.parts.as_slice();
        while let Some(first) = rest.first() {
            let (mut end, mut count) = (first.end, 1);
            for next in rest.iter().skip(1) {
                let joined = end.max(next.end);
                if next.start > end.saturating_add(GAP) || joined - first.start > READ_MAX {
                    break;
                }
                (end, count) = (joined, count + 1);
            }
            let (together, others) = rest.split_at(count);
            rest = others;
            let read = self.read_at(file, first.start, end - first.start);
            match (read, together) {
                (Ok(bytes), [one]) => answer(answers, one.index, Ok(bytes)),
                (Ok(bytes), _) => {
                    for part in together {
                        let own = cut(&bytes, part.start - first.start, part.end - first.start);
                        answer(answers, part.index, Ok(own.to_vec()));
                    }
                }
                // A failure is told of those that it is about.
                (Err(e), [one]) => answer(answers, one.index, Err(e)),
                (Err(_), _) => {
                    for part in together {
                        let own = self.read_at(file, part.start, part.end - part.start);
                        answer(answers, part.index, own);
                    }
                }
            }
        }
    }

    fn read_at(&self, file: &Opened<'_>, offset: u64, len: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = room(len)?;
        let read = self.session.read(file.open, offset, &mut bytes);
        let read = read.map_err(|e| self.failed(file.path, &e))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    fn failed(&self, path: &[u8], e: &volary::Error) -> Failure {
        let slash = if path.starts_with(b"/") { "" } else { "/" };
        let words = format!("cannot read {}:{slash}{}: {e}", self.name, escape(path));
        Failure::new(e.kind(), words)
    }
}

/// Returns the offset that `at` means in a file of this size, which lies in it or at its end.
fn from_end(at: i64, size: u64) -> u64 {
    match u64::try_from(at) {
        Ok(at) => at.min(size),
        Err(_) => size.saturating_sub(at.unsigned_abs()),
    }
}

/// Returns the bytes from `start` to `end`, as many as there are.
fn cut(bytes: &[u8], start: u64, end: u64) -> &[u8] {
    let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(within(start)..within(end)).unwrap_or_default()
}
