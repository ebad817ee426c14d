//! Shows names in a form that DOS and Windows clients can hold.

use volary_core::{Caps, Ctx, Error, Fs, Kind, Layer, Name, NameUse, NodeId, Result};

/// Maps names one to one between any bytes and names that DOS, Windows and their formats can hold.
/// A byte that they cannot hold is written `%XX`, in upper-case hexadecimal.
///
/// The escaped bytes are control characters and `" * : < > ? \ |`; bytes that are not UTF-8; a dot
/// or space at the end; and a `%` before two upper-case hexadecimal digits. The first letter of a
/// device's name is escaped too: `CON`, `PRN`, `AUX`, `NUL`, `COM1` to `COM9`, `LPT1` to `LPT9`.
/// This holds also with `¹`, `²`, `³`, in any case, with or without an extension. All else stays
/// the same.
///
/// [`Side::Above`] shows the volume's names to clients in this form. [`Side::Below`] stores
/// clients' names on the volume in this form: a FAT volume can then keep any name
/// ([`Caps::ANY_NAME`]).
///
/// Some names on the mapped side are not the form of any name (`%41` would be `A`). They are never
/// found (`NotFound`), cannot be made (`Invalid`), and are left out of listings if they are on the
/// volume. A name whose form is longer than [`Caps::name_max`] answers `NameTooLong`; if it is on
/// the volume, it is listed, but cannot be looked up. Targets of symlinks are not mapped: put
/// `symlinks` below.
pub struct Munge {
    below: Fs,
    side: Side,
}

/// The side of the layer that has the mapped names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The clients.
    Above,
    /// The volume.
    Below,
}

/// Returns the escaped form of a name, which every client can hold.
pub fn munge(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut at = 0;
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            let escaped = match c {
                '\0'..='\x1f' | '\x7f' | '"' | '*' | '/' | ':' | '<' | '>' | '?' | '\\' | '|' => {
                    true
                }
                '%' => is_escape(name.get(at..).unwrap_or_default()),
                '.' | ' ' => at + 1 == name.len(),
                _ => at == 0 && is_device(name),
            };
            if escaped {
                // All of these are one byte long.
                escape_byte(&mut out, c as u8);
            } else {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            at += c.len_utf8();
        }
        for &b in chunk.invalid() {
            escape_byte(&mut out, b);
            at += 1;
        }
    }
    out
}

/// Returns the name whose escaped form this is; `None` if it is not the form of any name.
pub fn unmunge(form: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(form.len());
    let mut rest = form;
    while let [first, tail @ ..] = rest {
        if is_escape(rest) {
            let digits = std::str::from_utf8(rest.get(1..3)?).ok()?;
            name.push(u8::from_str_radix(digits, 16).ok()?);
            rest = rest.get(3..)?;
        } else {
            name.push(*first);
            rest = tail;
        }
    }
    (munge(&name) == form).then_some(name)
}

fn escape_byte(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
    let digit = |n: u8| DIGITS.get(usize::from(n & 15)).copied().unwrap_or(b'0');
    out.extend([b'%', digit(byte >> 4), digit(byte)]);
}

fn is_escape(text: &[u8]) -> bool {
    let digit = |b: &u8| b.is_ascii_digit() || (b'A'..=b'F').contains(b);
    matches!(text, [b'%', a, b, ..] if digit(a) && digit(b))
}

/// Returns whether DOS takes the name for that of a device.
fn is_device(name: &[u8]) -> bool {
    let stem = name.split(|&b| b == b'.').next().unwrap_or_default();
    let stem = stem.trim_ascii_end();
    let is = |device: &[u8]| stem.eq_ignore_ascii_case(device);
    match stem {
        // The last are ¹, ², ³, which Windows takes for digits here (Microsoft, "Naming Files,
        // Paths, and Namespaces").
        [head @ .., b'1'..=b'9'] | [head @ .., 0xc2, 0xb9 | 0xb2 | 0xb3] => {
            head.eq_ignore_ascii_case(b"COM") || head.eq_ignore_ascii_case(b"LPT")
        }
        _ => is(b"CON") || is(b"PRN") || is(b"AUX") || is(b"NUL"),
    }
}

impl Munge {
    /// Puts the layer over `below`.
    pub fn new(below: Fs, side: Side) -> Self {
        Self { below, side }
    }

    /// Parses `above` or `below`; an empty text means `above`.
    ///
    /// # Errors
    /// `Invalid`, which says what is expected; also for `below` over a volume that can keep any
    /// name.
    pub fn parse(below: Fs, text: &str) -> Result<Self> {
        let refuse = |words: &str| Err(Error::note(Kind::Invalid, words));
        match text {
            "" | "above" => Ok(Self::new(below, Side::Above)),
            "below" if below.caps().has(Caps::ANY_NAME) => {
                refuse("layer munge=below: the volume keeps any name as it is")
            }
            "below" => Ok(Self::new(below, Side::Below)),
            _ => refuse("layer munge takes above or below"),
        }
    }

    /// Returns a client's name in the form of the volume; the error `otherwise` if it has none.
    fn down(&self, name: Name<'_>, otherwise: Kind) -> Result<Vec<u8>> {
        let mapped = match self.side {
            Side::Above => unmunge(name.as_bytes()).ok_or(otherwise)?,
            Side::Below => munge(name.as_bytes()),
        };
        if mapped.len() > usize::from(self.below.caps().name_max) {
            return Err(Kind::NameTooLong.into());
        }
        Name::new(&mapped).map_err(|_| otherwise)?;
        Ok(mapped)
    }
}

impl Layer for Munge {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn caps(&self) -> Caps {
        let caps = self.below.caps();
        match self.side {
            Side::Above => caps.without(Caps::ANY_NAME),
            Side::Below => caps.with(Caps::ANY_NAME),
        }
    }

    const MAPS_NAMES: bool = true;

    fn name_down(
        &self,
        _: &Ctx<'_>,
        _: NodeId,
        name: Name<'_>,
        of: NameUse,
    ) -> Result<Option<Vec<u8>>> {
        self.down(name, of.refusal()).map(Some)
    }

    fn name_up(&self, name: &[u8]) -> Option<Vec<u8>> {
        match self.side {
            Side::Above => Some(munge(name)),
            Side::Below => unmunge(name).filter(|name| Name::new(name).is_ok()),
        }
    }
}
