//! How names are shown and made: VFAT's long names, and DosFs's three
//! translations of short ones (paper, section 3.2).

use crate::names::codepage::CodePage;
use crate::names::long::LongName;
use crate::names::record::{Long, LongStyle, Record};
use crate::names::short::{self, Basis, LOWER_BASE, LOWER_EXT, TrimSpaces, exact};
use crate::unix::paper;
use crate::volume::ondisk::{DOT, DOT_DOT, Short};
use volary_core::{Error, Kind, Result, fold_into};
use volary_ondisk::wtf8::from_utf16;

/// A translation of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// Long names of up to 255 UTF-16 units, short ones in the case that
    /// Windows NT gives them. Case is kept but does not tell names apart.
    Long,
    /// Short names as DOS shows them.
    Dos,
    /// Short names in lower case.
    Lower,
    /// The 11 bytes of the entry as one string, without a dot of its own and
    /// as they are. Case tells names apart.
    Unix,
}

impl Style {
    /// The values of the option `names`.
    pub const CHOICES: [(&'static str, Self); 4] = [
        ("long", Self::Long),
        ("dos", Self::Dos),
        ("lower", Self::Lower),
        ("unix", Self::Unix),
    ];
}

/// What stands on the disk for a name that is to be made.
#[expect(clippy::large_enum_variant, reason = "made once a call, on the stack")]
#[derive(Clone, Copy)]
pub enum Stored {
    /// This short name alone; the second is `DIR_NTRes`.
    Short(Short, u8),
    /// A long name, and a short one from this basis.
    Long(LongName, Basis),
    /// The paper's: 11 bytes and 31 more.
    Paper(Short, [u8; paper::TAIL_LEN]),
}

/// A translation with all that it needs.
#[derive(Debug)]
pub struct Names {
    /// The translation.
    pub style: Style,
    /// The code page of short names.
    pub page: CodePage,
    /// Where long names stand.
    pub long: LongStyle,
}

impl Names {
    /// Returns a translation; `paper` for volumes in the paper's layout.
    ///
    /// # Errors
    /// `Invalid` if there is no such code page.
    pub fn new(style: Style, codepage: u16, paper: bool) -> Result<Self> {
        Ok(Self {
            style,
            page: CodePage::new(codepage)?,
            long: if paper {
                LongStyle::Paper
            } else {
                LongStyle::Vfat
            },
        })
    }

    /// Returns whether case tells names apart.
    pub fn case_sensitive(&self) -> bool {
        self.style == Style::Unix
    }

    /// Returns whether the case of names is kept.
    pub(crate) fn keeps_case(&self) -> bool {
        matches!(self.style, Style::Long | Style::Unix)
    }

    /// Most bytes in a name.
    pub fn name_max(&self) -> u16 {
        match (self.style, self.long) {
            // 255 units of UTF-16, but at most this many bytes for Linux.
            (Style::Long, _) => 255,
            (_, LongStyle::Paper) => paper::NAME_MAX as u16,
            (Style::Unix, LongStyle::Vfat) => 11,
            (Style::Dos | Style::Lower, LongStyle::Vfat) => 12,
        }
    }

    /// Sets `out` to the name of a record: always bytes that can be a
    /// [`Name`](volary_core::Name), but for `.` and `..` themselves.
    pub fn show(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        out.clear();
        match record.long {
            Long::Vfat(units) if self.style == Style::Long && can_show(units) => {
                from_utf16(units, out);
            }
            Long::Paper(tail) => paper_name(&record.short.DIR_Name, &tail, out),
            _ => self.show_short(&record.short.DIR_Name, record.short.DIR_NTRes, out),
        }
    }

    /// Appends a short name; `flags` are its `DIR_NTRes`.
    pub fn show_short(&self, name: &Short, flags: u8, out: &mut Vec<u8>) {
        if *name == DOT || *name == DOT_DOT {
            out.extend_from_slice(name.trim_spaces());
            return;
        }
        // In the paper's layout that byte is a part of the mode.
        let flags = match (self.style, self.long) {
            (Style::Long, LongStyle::Vfat) => flags,
            (Style::Lower, _) => LOWER_BASE | LOWER_EXT,
            _ => 0,
        };
        if self.style == Style::Unix {
            show_raw(name, out);
        } else {
            short::decode(name, flags, &self.page, out);
        }
    }

    /// Returns what is to be stored for a name.
    ///
    /// # Errors
    /// `Invalid` for what the translation cannot say; `NameTooLong`.
    pub fn store(&self, name: &[u8]) -> Result<Stored> {
        match self.style {
            Style::Long => self.store_long(name),
            Style::Dos | Style::Lower => self.store_short(name),
            Style::Unix => self.store_raw(name),
        }
    }

    fn store_long(&self, name: &[u8]) -> Result<Stored> {
        if let Some(e) = exact(name, &self.page)
            && (e.flags == 0 || self.long == LongStyle::Vfat)
        {
            return Ok(Stored::Short(e.name, e.flags));
        }
        let long = LongName::new(name)?;
        Ok(Stored::Long(long, Basis::of(name, &self.page)))
    }

    /// Case is not kept, so letters of any case will do.
    fn store_short(&self, name: &[u8]) -> Result<Stored> {
        let mut upper = Vec::with_capacity(name.len());
        fold_into(name, &mut upper);
        if let Some(e) = exact(&upper, &self.page) {
            return Ok(Stored::Short(e.name, 0));
        }
        LongName::new(name)?;
        if self.long == LongStyle::Paper {
            return store_paper(name);
        }
        let dot = name.iter().rposition(|&b| b == b'.').unwrap_or(name.len());
        if dot > 8 || name.len() > dot + 4 {
            return Err(Kind::NameTooLong.into());
        }
        Err(Error::note(
            Kind::Invalid,
            "not a name of eight characters, a dot and three (names=long has no such limit)",
        ))
    }

    fn store_raw(&self, name: &[u8]) -> Result<Stored> {
        if name.last() == Some(&b' ') || matches!(name.first(), Some(&crate::volume::ondisk::KANJI))
        {
            let words = "with names=unix a name cannot end in a space or begin with byte 5";
            return Err(Error::note(Kind::Invalid, words));
        }
        if name.len() > 11 {
            return match self.long {
                LongStyle::Paper => store_paper(name),
                LongStyle::Vfat => Err(Kind::NameTooLong.into()),
            };
        }
        let mut short = [b' '; 11];
        for (to, from) in short.iter_mut().zip(name) {
            *to = *from;
        }
        short::hide_first(&mut short);
        Ok(Stored::Short(short, 0))
    }

    /// Sets `out` to the folded form of a short name as it is shown without
    /// flags; what is in `spare` is lost.
    pub fn fold_short(&self, name: &Short, spare: &mut Vec<u8>, out: &mut Vec<u8>) {
        // These stand for themselves in every code page.
        let is_plain = |b: &u8| matches!(b, b' '..=b'~') && !matches!(b, b'.' | b'/');
        let (base, ext) = name.split_at(8);
        let (base, ext) = (base.trim_spaces(), ext.trim_spaces());
        let is_empty = base.is_empty() && ext.is_empty();
        if self.style == Style::Unix || is_empty || !name.iter().all(is_plain) {
            spare.clear();
            self.show_short(name, 0, spare);
            return self.fold(spare, out);
        }
        out.clear();
        out.reserve(name.len() + 1);
        out.extend_from_slice(base);
        if !ext.is_empty() {
            out.push(b'.');
            out.extend_from_slice(ext);
        }
        out.make_ascii_uppercase();
    }

    /// Sets `out` to the form of a name in which names that are the same are
    /// equal bytes.
    pub fn fold(&self, name: &[u8], out: &mut Vec<u8>) {
        out.clear();
        if self.case_sensitive() {
            out.extend_from_slice(name);
        } else {
            fold_into(name, out);
        }
    }
}

/// Returns whether a long name can be a name here; else its short name is shown.
fn can_show(units: &[u16]) -> bool {
    const DOT: u16 = b'.' as u16;
    !matches!(units, [DOT] | [DOT, DOT]) && !units.iter().any(|&u| u == 0 || u == u16::from(b'/'))
}

/// Eleven bytes and 31 more as one name, in the paper's layout.
fn store_paper(name: &[u8]) -> Result<Stored> {
    if name.len() > paper::NAME_MAX {
        return Err(Kind::NameTooLong.into());
    }
    if name.last() == Some(&b' ') {
        return Err(Error::note(Kind::Invalid, "a name cannot end in a space"));
    }
    let mut short = [b' '; 11];
    let mut tail = [b' '; paper::TAIL_LEN];
    for (to, from) in short.iter_mut().chain(&mut tail).zip(name) {
        *to = *from;
    }
    short::hide_first(&mut short);
    Ok(Stored::Paper(short, tail))
}

fn paper_name(name: &Short, tail: &[u8; paper::TAIL_LEN], out: &mut Vec<u8>) {
    let mut all = [b' '; paper::NAME_MAX];
    for (to, from) in all.iter_mut().zip(name.iter().chain(tail)) {
        *to = *from;
    }
    show_raw(&all, out);
}

/// Appends bytes up to their padding, less what cannot be in a name.
fn show_raw(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    for (i, &b) in bytes.trim_spaces().iter().enumerate() {
        match b {
            crate::volume::ondisk::KANJI if i == 0 => out.push(crate::volume::ondisk::FREE),
            0 => out.extend_from_slice("\u{f000}".as_bytes()),
            b'/' => out.extend_from_slice("\u{f02f}".as_bytes()),
            b => out.push(b),
        }
    }
    match out.get(start..) {
        Some(b"") => out.extend_from_slice("\u{f020}".as_bytes()),
        Some(b"." | b"..") => {
            out.pop();
            out.extend_from_slice("\u{f02e}".as_bytes());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
