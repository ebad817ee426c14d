use super::batch::{ALONE, BATCH_LEN};
use super::*;
use crate::nodes::host_range::HostRange;
use crate::told::failure::Failure;
use crate::told::observer::Unobserved;
use std::fmt::Write;
use volary_core::{FileKind, Time};

/// Records the items that come, and fails at the name `fails_at`.
#[derive(Default)]
struct Notes {
    text: String,
    fails_at: &'static str,
    /// The answer to stretches of a host's file.
    host_range: Option<u64>,
}

impl Notes {
    fn note(&mut self, what: &str, name: &[u8]) -> Done {
        let name = String::from_utf8_lossy(name);
        write!(self.text, "{what}{name} ").unwrap();
        if !self.fails_at.is_empty() && name == self.fails_at {
            return Err(Failure::words("", ""));
        }
        Ok(())
    }
}

impl Sink for Notes {
    fn enter(&mut self, name: &[u8], _: &Meta) -> Done {
        self.note(">", name)
    }
    fn leave(&mut self) -> Done {
        self.note("<", b"")
    }
    fn file(&mut self, name: &[u8], _: &Meta, data: &[u8], more: bool) -> Done {
        let len = format!("={}{}", data.len(), if more { "+" } else { "" });
        self.note("", &[name, len.as_bytes()].concat())?;
        if name == self.fails_at.as_bytes() {
            return Err(Failure::words("", ""));
        }
        Ok(())
    }
    fn data(&mut self, data: &[u8], more: bool) -> Done {
        self.note(
            "",
            format!("={}{}", data.len(), if more { "+" } else { "" }).as_bytes(),
        )
    }
    fn host_range(&mut self, _: &HostRange) -> Done<Option<u64>> {
        let copied = self.host_range.map_or("-".into(), |len| len.to_string());
        self.note("@", copied.as_bytes())?;
        Ok(self.host_range)
    }
    fn hole(&mut self, len: u64, more: bool) -> Done {
        self.note(
            "~",
            format!("{len}{}", if more { "+" } else { "" }).as_bytes(),
        )
    }
    fn broken(&mut self) -> Done {
        self.text.push_str("broken ");
        Ok(())
    }
    fn xattr(&mut self, name: &[u8], value: &[u8]) {
        let _ = self.note("$", &[name, b"=", value].concat());
    }
    fn link(&mut self, name: &[u8], _: &Meta) -> Done {
        self.note("&", name)
    }
    fn symlink(&mut self, name: &[u8], _: &Meta, target: &[u8]) -> Done {
        self.note("@", &[name, target].concat())
    }
    fn special(&mut self, name: &[u8], _: &Meta) -> Done {
        self.note("!", name)
    }
}

fn meta(len: Option<u64>) -> Meta {
    Meta {
        kind: FileKind::File,
        mode: 0,
        uid: 0,
        gid: 0,
        len,
        rdev: 0,
        atime: Time::EPOCH,
        mtime: Time::EPOCH,
        dos: None,
        id: None,
        keeps_modes: true,
        link: None,
        has_xattrs: false,
    }
}

fn zeros(len: u64) -> impl FnMut(u64, &mut [u8]) -> Done<usize> {
    move |offset, room| Ok((len - offset).min(room.len() as u64) as usize)
}

fn copy(
    fails_at: &'static str,
    source: impl FnOnce(&mut Outlet<'_, '_>) -> Done,
) -> (String, Done, Tally) {
    let mut notes = Notes {
        fails_at,
        ..Notes::default()
    };
    let mut tally = Tally::default();
    let done = run(source, &mut notes, &mut None, &mut tally, &Unobserved);
    (notes.text, done, tally)
}

#[test]
fn a_tree_arrives_in_order() {
    let (text, done, _) = copy("", |to| {
        to.enter(b"d", meta(None))?;
        to.file(b"a", meta(Some(3)), &mut zeros(3))?;
        to.symlink(b"s", meta(None), b"t")?;
        to.leave()?;
        to.special(b"p", meta(None))
    });
    assert_eq!(text, ">d a=3 @st < !p ");
    assert!(done.is_ok());
}

/// Returns the results of consecutive whole files only in `settle`.
#[derive(Default)]
struct Late {
    notes: Notes,
    under_way: Vec<Done>,
}

impl Sink for Late {
    fn enter(&mut self, name: &[u8], meta: &Meta) -> Done {
        self.notes.enter(name, meta)
    }
    fn leave(&mut self) -> Done {
        assert!(self.under_way.is_empty(), "it leaves before all is told");
        self.notes.leave()
    }
    fn file(&mut self, name: &[u8], meta: &Meta, data: &[u8], more: bool) -> Done {
        self.notes.file(name, meta, data, more)
    }
    fn files(&mut self, files: &Files) -> Vec<Done> {
        for part in files.parts(2) {
            assert!(part.len() <= 2);
            let made = part.each(|name, meta, data| self.notes.file(name, meta, data, false));
            self.under_way.extend(made);
        }
        Vec::new()
    }
    fn settle(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.under_way)
    }
    fn data(&mut self, data: &[u8], more: bool) -> Done {
        self.notes.data(data, more)
    }
    fn broken(&mut self) -> Done {
        self.notes.broken()
    }
    fn xattr(&mut self, name: &[u8], value: &[u8]) {
        self.notes.xattr(name, value);
    }
    fn link(&mut self, name: &[u8], meta: &Meta) -> Done {
        self.notes.link(name, meta)
    }
    fn symlink(&mut self, name: &[u8], meta: &Meta, target: &[u8]) -> Done {
        self.notes.symlink(name, meta, target)
    }
    fn special(&mut self, name: &[u8], meta: &Meta) -> Done {
        self.notes.special(name, meta)
    }
}

#[test]
fn what_is_told_late_is_told_before_a_directory_is_left() {
    let mut late = Late::default();
    late.notes.fails_at = "b";
    let mut tally = Tally::default();
    let long = ALONE as u64;
    let source = |to: &mut Outlet<'_, '_>| {
        to.file(b"long", meta(Some(long)), &mut zeros(long))?;
        to.enter(b"d", meta(None))?;
        for name in [b"a", b"b", b"c"] {
            to.file(name, meta(Some(3)), &mut zeros(3))?;
        }
        to.leave()?;
        to.file(b"e", meta(Some(1)), &mut zeros(1))?;
        to.file(b"f", meta(Some(1)), &mut zeros(1))
    };
    let done = run(source, &mut late, &mut None, &mut tally, &Unobserved);
    assert!(done.is_ok());
    let end = ">d a=3 b=3 c=3 < e=1 f=1 ";
    assert!(late.notes.text.ends_with(end), "{}", late.notes.text);
    assert!(late.under_way.is_empty());
    assert!(tally.first.is_some(), "of b");
    assert_eq!((tally.files, tally.bytes), (6, long + 11));
}

#[test]
fn files_of_every_length_arrive_whole() {
    const LEN: u64 = BATCH_LEN as u64;
    let long = 2 * ALONE as u64 + 7;
    for len in [0, 1, LEN / 2, LEN - 1, LEN, LEN + 1, 10 * LEN, long] {
        for known in [Some(len), None] {
            let (text, done, _) = copy("", move |to| to.file(b"f", meta(known), &mut zeros(len)));
            let parts = text
                .split_whitespace()
                .map(|p| p.trim_start_matches(['f', '=']));
            let sum: u64 = parts
                .map(|p| p.trim_end_matches('+').parse::<u64>().unwrap())
                .sum();
            assert_eq!(sum, len, "{text}");
            assert!(done.is_ok() && !text.trim_end().ends_with('+'), "{text}");
        }
    }
}

#[test]
fn a_directory_that_fails_is_passed_over_whole() {
    let (text, done, tally) = copy("d", |to| {
        to.enter(b"d", meta(None))?;
        to.enter(b"e", meta(None))?;
        to.leave()?;
        to.file(b"a", meta(Some(1)), &mut zeros(1))?;
        to.leave()?;
        to.file(b"b", meta(Some(1)), &mut zeros(1))
    });
    assert_eq!(text, ">d b=1 ");
    assert!(done.is_ok());
    assert!(tally.first.is_some());
}

#[test]
fn a_file_that_fails_is_passed_over_to_its_end() {
    let long = 3 * BATCH_LEN as u64;
    let (text, ..) = copy("a", move |to| {
        to.file(b"a", meta(Some(long)), &mut zeros(long))?;
        to.file(b"b", meta(Some(1)), &mut zeros(1))
    });
    assert!(text.starts_with("a=") && text.ends_with(" b=1 "), "{text}");
    assert_eq!(text.split_whitespace().count(), 2, "{text}");
}

#[test]
fn a_read_that_fails_in_the_middle_is_told_to_the_sink() {
    let long = 3 * BATCH_LEN as u64;
    let (text, done, _) = copy("", move |to| {
        to.file(b"a", meta(Some(long)), &mut |offset, room: &mut [u8]| {
            if offset > BATCH_LEN as u64 {
                return Err(Failure::words("", "bad"));
            }
            Ok(room.len())
        })
    });
    assert!(text.ends_with("broken "), "{text}");
    assert_eq!(done.unwrap_err().to_string(), "bad");
}

#[test]
fn a_long_copy_arrives_in_order_from_both_threads() {
    const FILES: u64 = 3 * (ALONE / BATCH_LEN) as u64;
    let (text, done, _) = copy("", |to| {
        to.enter(b"d", meta(None))?;
        for n in 0..FILES {
            let len = BATCH_LEN as u64 / 2 + n;
            to.file(b"", meta(Some(len)), &mut zeros(len))?;
        }
        to.leave()
    });
    let lens = (0..FILES).map(|n| format!("={} ", BATCH_LEN as u64 / 2 + n));
    let files: String = lens.collect();
    let whole: String = text.replace("+ =", "+=");
    let sums = whole.split(' ').map(|file| {
        let parts = file.split("+").map(|p| p.trim_start_matches('='));
        parts.filter_map(|p| p.parse::<u64>().ok()).sum::<u64>()
    });
    let sums: String = sums.filter(|n| *n > 0).map(|n| format!("={n} ")).collect();
    assert_eq!(sums, files);
    assert!(text.starts_with(">d ") && text.ends_with(" < "), "{text}");
    assert!(done.is_ok());
}

#[test]
fn a_sink_that_stops_ends_the_source() {
    struct Full(u64);
    impl Sink for Full {
        fn enter(&mut self, _: &[u8], _: &Meta) -> Done {
            Ok(())
        }
        fn leave(&mut self) -> Done {
            Ok(())
        }
        fn file(&mut self, _: &[u8], _: &Meta, data: &[u8], _: bool) -> Done {
            let full = || Failure::words("", "full").stopping();
            self.0 = self.0.checked_sub(data.len() as u64).ok_or_else(full)?;
            Ok(())
        }
        fn data(&mut self, _: &[u8], _: bool) -> Done {
            Ok(())
        }
        fn broken(&mut self) -> Done {
            Ok(())
        }
        fn xattr(&mut self, _: &[u8], _: &[u8]) {}
        fn link(&mut self, _: &[u8], _: &Meta) -> Done {
            Ok(())
        }
        fn symlink(&mut self, _: &[u8], _: &Meta, _: &[u8]) -> Done {
            Ok(())
        }
        fn special(&mut self, _: &[u8], _: &Meta) -> Done {
            Ok(())
        }
    }
    for room in [0, 2 * ALONE as u64] {
        let endless = |to: &mut Outlet<'_, '_>| loop {
            to.file(b"a", meta(Some(10_000)), &mut zeros(10_000))?;
        };
        let mut sink = Full(room);
        let tally = &mut Tally::default();
        let done = run(endless, &mut sink, &mut None, tally, &Unobserved);
        assert_eq!(done.unwrap_err().to_string(), "full");
    }
}

/// Alternating data and holes, each of this many bytes.
struct Stripes(u64);

impl Pieces for Stripes {
    fn next(&mut self, offset: u64, room: &mut [u8]) -> Done<Piece> {
        let left = self.0 - offset % self.0;
        if offset / self.0 % 2 == 1 {
            return Ok(Piece::Hole(left));
        }
        let len = room.len().min(usize::try_from(left).unwrap());
        room[..len].fill(b'x');
        Ok(Piece::Data(len))
    }
    fn data_len(&mut self) -> Option<u64> {
        Some(2 * self.0)
    }
}

#[test]
fn holes_arrive_between_the_data_that_they_are_between() {
    for len in [1, 10, BATCH_LEN as u64 + 5] {
        let (text, done, _) = copy("", |to| {
            to.xattr(b"n", b"v")?;
            to.file(b"f", meta(Some(4 * len)), &mut Stripes(len))?;
            to.link(b"g", meta(None))
        });
        assert!(done.is_ok());
        let parts = text.split_whitespace().collect::<Vec<_>>();
        let (first, last) = (parts[0], parts[parts.len() - 1]);
        assert_eq!((first, last), ("$n=v", "&g"), "{text}");
        let holes: Vec<_> = parts.iter().filter(|p| p.starts_with('~')).collect();
        assert_eq!(holes, [&format!("~{len}+"), &format!("~{len}")], "{text}");
        let data = parts.iter().filter_map(|p| p.split_once('='));
        let data = data.filter_map(|(_, n)| n.trim_end_matches('+').parse::<u64>().ok());
        assert_eq!(data.sum::<u64>(), 2 * len, "{text}");
    }
}

#[test]
fn a_budget_counts_data_and_stops_before_the_file_that_is_too_much() {
    let source = |to: &mut Outlet<'_, '_>| {
        to.file(b"a", meta(Some(40)), &mut Stripes(10))?;
        to.file(b"b", meta(Some(40)), &mut Stripes(10))
    };
    let (mut notes, mut tally) = (Notes::default(), Tally::default());
    let budget = &mut Some(Budget::new(39));
    let done = run(source, &mut notes, budget, &mut tally, &Unobserved);
    let failure = done.unwrap_err();
    assert!(failure.stops());
    let line = failure.to_string();
    assert!(line.contains("more than 39 bytes"), "{line}");
    assert!(notes.text.contains('a') && !notes.text.contains('b'));
}

/// Content whose first bytes are read and whose rest the host can copy. Records the lengths copied.
struct InHostFile(Vec<u64>);

impl Pieces for InHostFile {
    fn next(&mut self, _: u64, room: &mut [u8]) -> Done<Piece> {
        let len = room.len().min(10);
        room[..len].fill(b'x');
        Ok(Piece::Data(len))
    }
    fn host_range(&mut self, offset: u64) -> Option<HostRange> {
        let goes = self.0.last().is_none_or(|copied| *copied > 0);
        (offset >= 10 && goes).then(HostRange::nowhere)
    }
    fn copied(&mut self, copied: u64) {
        self.0.push(copied);
    }
}

#[test]
fn stretches_that_lie_somewhere_are_copied_after_what_comes_before() {
    let all = [Some(30), Some(0), None].map(|answer| [(answer, 0), (answer, 2 * ALONE as u64)]);
    for (answer, before) in all.into_iter().flatten() {
        let mut content = InHostFile(Vec::new());
        let mut notes = Notes {
            host_range: answer,
            ..Notes::default()
        };
        let source = |to: &mut Outlet<'_, '_>| {
            // After this many bytes, the sink has its own thread.
            to.file(b"c", meta(Some(before)), &mut zeros(before))?;
            to.file(b"a", meta(Some(70)), &mut content)?;
            to.file(b"b", meta(Some(1)), &mut zeros(1))
        };
        let tally = &mut Tally::default();
        run(source, &mut notes, &mut None, tally, &Unobserved).unwrap();
        let (text, lay) = match answer {
            Some(30) => ("a=10+ @30 @30 =0 b=1 ", vec![30, 30]),
            Some(_) => ("a=10+ @0 =60 b=1 ", vec![0]),
            None => ("a=10+ @- =60 b=1 ", vec![0]),
        };
        assert!(notes.text.ends_with(text), "{}", notes.text);
        assert_eq!((content.0, tally.bytes), (lay, before + 71));
    }
}

#[test]
fn a_file_that_fails_is_not_copied_from_where_it_lies() {
    let mut content = InHostFile(Vec::new());
    let mut notes = Notes {
        host_range: Some(30),
        fails_at: "a=10+",
        ..Notes::default()
    };
    let source = |to: &mut Outlet<'_, '_>| to.file(b"a", meta(Some(40)), &mut content);
    let mut budget = Some(Budget::new(1000));
    let tally = &mut Tally::default();
    let done = run(source, &mut notes, &mut budget, tally, &Unobserved);
    assert!(done.is_ok() && !notes.text.contains('@'), "{}", notes.text);
    assert!(tally.first.is_some());
}
