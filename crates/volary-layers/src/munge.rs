//! Shows names in a form that DOS and Windows clients can hold.

use volary_core::{Caps, Ctx, Error, Fs, Kind, Layer, Name, NameUse, NodeId, Result};

/// Maps names one to one between any bytes and those that DOS, Windows and their
/// formats can hold: a byte that they cannot is written `%XX`, in upper-case
/// hexadecimal.
///
/// Written so are control characters and `" * : < > ? \ |`; bytes that are not
/// UTF-8; a dot or space at the end; the first letter of a device's name (`CON`,
/// `PRN`, `AUX`, `NUL`, `COM1` to `COM9`, `LPT1` to `LPT9`, also with `¹`, `²`,
/// `³`, in any case, with or without something after a dot); and a `%` that two upper-case digits of
/// hexadecimal follow. All else stays as it is.
///
/// [`Side::Above`] shows the names of a volume so to its clients.
/// [`Side::Below`] keeps the names that clients give so on the volume: any name
/// can then be kept on a FAT volume ([`Caps::ANY_NAME`]).
///
/// A name on the mapped side that is not how any name is written (`%41` is `A`)
/// is found by nobody (`NotFound`) and cannot be made (`Invalid`); on the volume
/// it is left out of listings. A name that grows past [`Caps::name_max`] answers
/// `NameTooLong`, and one on the volume that does is listed, but cannot be
/// looked up. Symlinks keep the targets that they have: put `symlinks` below.
pub struct Munge {
    below: Fs,
    side: Side,
}

/// Which side of the layer has the mapped names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The clients.
    Above,
    /// The volume.
    Below,
}

/// Returns the form of any name that every client can hold.
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

/// Returns the name whose form this is, if it is one's.
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

/// Returns whether DOS takes the name for a device's.
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
    /// Over `below`.
    pub fn new(below: Fs, side: Side) -> Self {
        Self { below, side }
    }

    /// From a word: `above`, `below`; nothing for `above`.
    ///
    /// # Errors
    /// `Invalid`, saying what is expected; also for `below` over a volume that
    /// takes any name as it is.
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

    /// Returns a name that a client gave, as the volume has it; `otherwise` if it can
    /// have none.
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
