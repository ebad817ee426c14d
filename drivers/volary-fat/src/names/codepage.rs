//! Code pages: which bytes of a short name are which characters.
//!
//! A byte that a code page gives no meaning is shown as the private-use
//! character U+F000 + byte, so that every name can be shown, no two differ
//! only unseen, and what is shown can be looked up again.

use crate::names::chars::{lower, upper};
use encoding_rs::Encoding;
use oem_cp::code_table::DECODING_TABLE_CP_MAP;
use volary_core::{Error, Kind, Result};

/// Shows a byte that has no meaning: this character plus the byte.
const STAND_IN: u32 = 0xf000;

/// A code page for short names.
#[derive(Debug)]
pub struct CodePage {
    number: u16,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Single(Box<Single>),
    Double(&'static Encoding),
}

#[derive(Debug)]
struct Single {
    /// The characters of bytes 0x80–0xFF.
    decode: [char; 128],
    /// The same, sorted by character.
    encode: Vec<(char, u8)>,
}

/// A character's bytes in a code page: one or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    bytes: [u8; 2],
    len: usize,
}

impl Encoded {
    fn one(byte: u8) -> Self {
        Self {
            bytes: [byte, 0],
            len: 1,
        }
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }
}

/// A character of a short name, and how many bytes it took.
type Decoded = (char, usize);

impl CodePage {
    /// What DOS had in most countries, and what mkfs, mtools and Linux assume.
    pub const DEFAULT: u16 = 437;

    /// The numbers of all code pages there are.
    pub const ALL: [u16; 31] = [
        437, 720, 737, 775, 850, 852, 855, 857, 858, 860, 861, 862, 863, 864, 865, 866, 869, 874,
        932, 936, 949, 950, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258,
    ];

    /// Returns the code page of a number.
    ///
    /// # Errors
    /// `Invalid` if there is none, naming those that there are.
    pub fn new(number: u16) -> Result<Self> {
        let form = match number {
            932 => Form::Double(encoding_rs::SHIFT_JIS),
            936 => Form::Double(encoding_rs::GBK),
            949 => Form::Double(encoding_rs::EUC_KR),
            950 => Form::Double(encoding_rs::BIG5),
            _ => Form::Single(Box::new(
                single(number).ok_or_else(|| unknown_code_page(number))?,
            )),
        };
        Ok(Self { number, form })
    }

    /// Returns its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns whether `byte` begins a character of two bytes.
    pub fn is_lead(&self, byte: u8) -> bool {
        match self.form {
            Form::Single(_) => false,
            Form::Double(_) if self.number == 932 => matches!(byte, 0x81..=0x9f | 0xe0..=0xfc),
            Form::Double(_) => matches!(byte, 0x81..=0xfe),
        }
    }

    /// Returns the first character of `bytes`, which are not empty.
    fn decode_first(&self, bytes: &[u8]) -> Option<Decoded> {
        let &first = bytes.first()?;
        if first < 0x80 {
            return Some((char::from(first), 1));
        }
        match &self.form {
            Form::Single(s) => Some((*s.decode.get(usize::from(first & 0x7f))?, 1)),
            Form::Double(encoding) => Some(self.decode_double(encoding, first, bytes)),
        }
    }

    fn decode_double(&self, encoding: &'static Encoding, first: u8, bytes: &[u8]) -> Decoded {
        let len = if self.is_lead(first) { 2 } else { 1 };
        let one = |part: &[u8]| {
            let text = encoding.decode_without_bom_handling_and_without_replacement(part)?;
            let mut chars = text.chars();
            let c = chars.next().filter(|c| !c.is_control())?;
            chars.next().is_none().then_some(c)
        };
        match bytes.get(..len).and_then(one) {
            Some(c) => (c, len),
            None => (stand_in(first), 1),
        }
    }

    /// Appends the characters of `bytes` to `out` as UTF-8. What could not
    /// be part of a name (`/`, NUL), and a dot, which in a short name is not
    /// stored, are replaced by private-use characters.
    pub fn decode(&self, bytes: &[u8], to_lower: bool, out: &mut Vec<u8>) {
        let mut rest = bytes;
        while let Some((&first, after)) = rest.split_first() {
            if first < 0x80 {
                match first {
                    0 | b'/' | b'.' => push_char(stand_in(first), out),
                    _ if to_lower => out.push(first.to_ascii_lowercase()),
                    _ => out.push(first),
                }
                rest = after;
                continue;
            }
            let (c, len) = self.decode_first(rest).unwrap_or((stand_in(first), 1));
            push_char(if to_lower { lower(c) } else { c }, out);
            rest = rest.get(len..).unwrap_or_default();
        }
    }

    /// Returns the bytes of a character, if the code page has it.
    pub fn encode(&self, c: char) -> Option<Encoded> {
        if c.is_ascii() {
            return Some(Encoded::one(c as u8));
        }
        match &self.form {
            Form::Single(s) => {
                let at = s.encode.binary_search_by_key(&c, |e| e.0).ok()?;
                s.encode.get(at).map(|e| Encoded::one(e.1))
            }
            Form::Double(encoding) => self.encode_double(encoding, c),
        }
    }

    fn encode_double(&self, encoding: &'static Encoding, c: char) -> Option<Encoded> {
        if let Some(byte) = stood_for(c) {
            return (self.decode_first(&[byte])? == (c, 1)).then(|| Encoded::one(byte));
        }
        let mut utf8 = [0; 4];
        let (bytes, _, unmapped) = encoding.encode(c.encode_utf8(&mut utf8));
        let encoded = match *bytes.as_ref() {
            [a] => Encoded::one(a),
            [a, b] if self.is_lead(a) => Encoded {
                bytes: [a, b],
                len: 2,
            },
            _ => return None,
        };
        let back = self.decode_first(encoded.as_bytes());
        (!unmapped && back == Some((c, encoded.len))).then_some(encoded)
    }

    /// Returns the bytes of a character's upper-case form, if the code page has it.
    pub fn encode_upper(&self, c: char) -> Option<Encoded> {
        self.encode(upper(c))
    }
}

fn unknown_code_page(number: u16) -> Error {
    let all: Vec<String> = CodePage::ALL.iter().map(u16::to_string).collect();
    Error::note(
        Kind::Invalid,
        format!("no code page {number}; there are: {}", all.join(", ")),
    )
}

fn single(number: u16) -> Option<Single> {
    let mut decode = ['\0'; 128];
    for (byte, c) in (0x80..=0xff_u8).zip(decode.iter_mut()) {
        let meaning = match DECODING_TABLE_CP_MAP.get(&number) {
            Some(table) => table.decode_char_checked(byte),
            None => windows(number)?
                .decode_without_bom_handling_and_without_replacement(&[byte])
                .and_then(|text| text.chars().next()),
        };
        // C1 controls are what the Windows tables have for "nothing".
        *c = meaning
            .filter(|c| !c.is_control())
            .unwrap_or(stand_in(byte));
    }
    let mut encode: Vec<(char, u8)> = decode.iter().copied().zip(0x80..=0xff).collect();
    encode.sort_unstable();
    Some(Single { decode, encode })
}

fn windows(number: u16) -> Option<&'static Encoding> {
    Some(match number {
        1250 => encoding_rs::WINDOWS_1250,
        1251 => encoding_rs::WINDOWS_1251,
        1252 => encoding_rs::WINDOWS_1252,
        1253 => encoding_rs::WINDOWS_1253,
        1254 => encoding_rs::WINDOWS_1254,
        1255 => encoding_rs::WINDOWS_1255,
        1256 => encoding_rs::WINDOWS_1256,
        1257 => encoding_rs::WINDOWS_1257,
        1258 => encoding_rs::WINDOWS_1258,
        _ => return None,
    })
}

/// Returns the character that shows a byte without a meaning.
fn stand_in(byte: u8) -> char {
    char::from_u32(STAND_IN + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns the byte that a character stands for.
fn stood_for(c: char) -> Option<u8> {
    u32::from(c)
        .checked_sub(STAND_IN)
        .and_then(|n| u8::try_from(n).ok())
}

fn push_char(c: char, out: &mut Vec<u8>) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(page: &CodePage, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        page.decode(bytes, false, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_code_page_exists_and_says_what_it_wrote() {
        for number in CodePage::ALL {
            let page = CodePage::new(number).unwrap();
            assert_eq!(page.number(), number);
            for byte in 0x80..=0xff_u8 {
                if page.is_lead(byte) {
                    continue;
                }
                let (c, _) = page.decode_first(&[byte]).unwrap();
                assert_eq!(
                    page.encode(c),
                    Some(Encoded::one(byte)),
                    "{number} {byte:#x}"
                );
            }
        }
        assert_eq!(CodePage::new(7).unwrap_err(), Kind::Invalid);
    }

    #[test]
    fn known_bytes_are_known_characters() {
        let cases: [(u16, &[u8], &str); 6] = [
            (437, b"\x8a\xe1", "èß"),
            (850, b"\x9d\xb5", "ØÁ"),
            (866, b"\x8f\x90", "ПР"),
            (1252, b"\xc4\x80", "Ä€"),
            (932, b"\x93\xfa\x96\x7b", "日本"),
            (936, b"\xd6\xd0", "中"),
        ];
        for (number, bytes, expected) in cases {
            assert_eq!(text(&CodePage::new(number).unwrap(), bytes), expected);
        }
    }

    #[test]
    fn bytes_that_could_not_be_in_a_name_are_shown_as_others() {
        let page = CodePage::new(437).unwrap();
        assert_eq!(text(&page, b"A/.\0"), "A\u{f02f}\u{f02e}\u{f000}");
        let half = CodePage::new(932).unwrap();
        assert_eq!(text(&half, b"\x80"), "\u{f080}");
        assert_eq!(text(&half, b"A\x93"), "A\u{f093}");
    }

    #[test]
    fn a_character_that_the_page_lacks_has_no_bytes() {
        let page = CodePage::new(437).unwrap();
        assert_eq!(page.encode('日'), None);
        assert_eq!(page.encode_upper('é').unwrap().as_bytes(), b"\x90");
        assert_eq!(page.encode_upper('á'), None);
    }
}
