//! The specification's fields by name, offset and length.

use std::fmt::Write;
use volary_core::{Result, escape};
use volary_ondisk::dump::Out;

/// A field.
pub(super) struct Field {
    name: &'static str,
    at: usize,
    len: usize,
    form: Form,
}

#[derive(Clone, Copy)]
enum Form {
    /// Little-endian.
    Number,
    Text,
    Bytes,
}

const fn number(name: &'static str, at: usize, len: usize) -> Field {
    Field {
        name,
        at,
        len,
        form: Form::Number,
    }
}

const fn text(name: &'static str, at: usize, len: usize) -> Field {
    Field {
        name,
        at,
        len,
        form: Form::Text,
    }
}

const fn bytes(name: &'static str, at: usize, len: usize) -> Field {
    Field {
        name,
        at,
        len,
        form: Form::Bytes,
    }
}

/// What all boot sectors have.
pub(super) const BOOT: &[Field] = &[
    bytes("BS_jmpBoot", 0, 3),
    text("BS_OEMName", 3, 8),
    number("BPB_BytsPerSec", 11, 2),
    number("BPB_SecPerClus", 13, 1),
    number("BPB_RsvdSecCnt", 14, 2),
    number("BPB_NumFATs", 16, 1),
    number("BPB_RootEntCnt", 17, 2),
    number("BPB_TotSec16", 19, 2),
    number("BPB_Media", 21, 1),
    number("BPB_FATSz16", 22, 2),
    number("BPB_SecPerTrk", 24, 2),
    number("BPB_NumHeads", 26, 2),
    number("BPB_HiddSec", 28, 4),
    number("BPB_TotSec32", 32, 4),
];

/// The rest on FAT12 and FAT16.
pub(super) const BOOT16: &[Field] = &[
    number("BS_DrvNum", 36, 1),
    number("BS_Reserved1", 37, 1),
    number("BS_BootSig", 38, 1),
    number("BS_VolID", 39, 4),
    text("BS_VolLab", 43, 11),
    text("BS_FilSysType", 54, 8),
    bytes("signature", 510, 2),
];

/// The rest on FAT32.
pub(super) const BOOT32: &[Field] = &[
    number("BPB_FATSz32", 36, 4),
    number("BPB_ExtFlags", 40, 2),
    number("BPB_FSVer", 42, 2),
    number("BPB_RootClus", 44, 4),
    number("BPB_FSInfo", 48, 2),
    number("BPB_BkBootSec", 50, 2),
    bytes("BPB_Reserved", 52, 12),
    number("BS_DrvNum", 64, 1),
    number("BS_Reserved1", 65, 1),
    number("BS_BootSig", 66, 1),
    number("BS_VolID", 67, 4),
    text("BS_VolLab", 71, 11),
    text("BS_FilSysType", 82, 8),
    bytes("signature", 510, 2),
];

/// FSInfo but its filling.
pub(super) const FSINFO: &[Field] = &[
    number("FSI_LeadSig", 0, 4),
    number("FSI_StrucSig", 484, 4),
    number("FSI_Free_Count", 488, 4),
    number("FSI_Nxt_Free", 492, 4),
    bytes("FSI_Reserved2", 496, 12),
    number("FSI_TrailSig", 508, 4),
];

/// An entry with a short name.
pub(super) const SHORT: &[Field] = &[
    text("DIR_Name", 0, 11),
    number("DIR_Attr", 11, 1),
    number("DIR_NTRes", 12, 1),
    number("DIR_CrtTimeTenth", 13, 1),
    number("DIR_CrtTime", 14, 2),
    number("DIR_CrtDate", 16, 2),
    number("DIR_LstAccDate", 18, 2),
    number("DIR_FstClusHI", 20, 2),
    number("DIR_WrtTime", 22, 2),
    number("DIR_WrtDate", 24, 2),
    number("DIR_FstClusLO", 26, 2),
    number("DIR_FileSize", 28, 4),
];

/// An entry with a part of a long name.
pub(super) const LONG: &[Field] = &[
    number("LDIR_Ord", 0, 1),
    bytes("LDIR_Name1", 1, 10),
    number("LDIR_Attr", 11, 1),
    number("LDIR_Type", 12, 1),
    number("LDIR_Chksum", 13, 1),
    bytes("LDIR_Name2", 14, 12),
    number("LDIR_FstClusLO", 26, 2),
    bytes("LDIR_Name3", 28, 4),
];

/// Prints offset, name, raw bytes and value of each field.
pub(super) fn print_fields(out: &mut Out<'_>, fields: &[Field], raw: &[u8]) -> Result<()> {
    for field in fields {
        let part = raw.get(field.at..field.at + field.len).unwrap_or_default();
        let value = match field.form {
            Form::Bytes => String::new(),
            Form::Text => format!("\"{}\"", escape(part)),
            Form::Number => {
                let n = part.iter().rev().fold(0_u64, |n, &b| n << 8 | u64::from(b));
                format!("{n} ({n:#x})")
            }
        };
        let bytes = bytes_words(part);
        let words = format!("{:5}  {:16}  {bytes:36}  {value}", field.at, field.name);
        out.line(format_args!("{}", words.trim_end()))?;
    }
    Ok(())
}

/// Returns bytes as they are read by people: `55 aa`.
pub(super) fn bytes_words(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 3);
    for (i, b) in bytes.iter().enumerate() {
        let space = if i == 0 { "" } else { " " };
        // Cannot fail: it is a String.
        let _ = write!(out, "{space}{b:02x}");
    }
    out
}
