//! Requests and replies.

use super::field::{Field, fields};
use crate::convert;
use volary_core::{
    Access, Attr, Caps, Cookie, Create, Error, FileKind, Kind, Lock, Mode, NodeId, OpenId, SetAttr,
    Time,
};

/// The longest message of an error, in bytes.
const WORDS_MAX: usize = 512;

/// Defines the requests and their encoding from one list.
macro_rules! requests {
    ($($number:literal $name:ident { $($field:ident: $ty:ty),* })*) => {
        /// A request: one of the operations of a [`FileSystem`](volary_core::FileSystem).
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Request<'a> {
            $($name { $($field: $ty),* }),*
        }

        impl<'a> Field<'a> for Request<'a> {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name { $($field),* } => {
                        out.push($number);
                        $($field.put(out);)*
                    })*
                }
            }
            fn take(from: &mut &'a [u8]) -> Option<Self> {
                Some(match u8::take(from)? {
                    $($number => Self::$name { $($field: Field::take(from)?),* },)*
                    _ => return None,
                })
            }
        }
    };
}

requests! {
    1 StatFs {}
    2 Sync {}
    3 Detach {}
    4 Lookup { dir: NodeId, name: &'a [u8] }
    5 Parent { dir: NodeId }
    6 ReadDir { dir: OpenId, from: Cookie, with_attr: bool }
    7 Create { dir: NodeId, name: &'a [u8], how: Create, set: SetAttr }
    8 MkDir { dir: NodeId, name: &'a [u8], set: SetAttr }
    9 MkNod { dir: NodeId, name: &'a [u8], kind: FileKind, rdev: u64, set: SetAttr }
    10 Symlink { dir: NodeId, name: &'a [u8], target: &'a [u8], set: SetAttr }
    11 Link { node: NodeId, dir: NodeId, name: &'a [u8] }
    12 Unlink { dir: NodeId, name: &'a [u8] }
    13 RmDir { dir: NodeId, name: &'a [u8] }
    14 Rename { from: NodeId, name: &'a [u8], to: NodeId, new_name: &'a [u8], flags: u32 }
    15 GetAttr { node: NodeId }
    16 SetAttr { node: NodeId, set: SetAttr }
    17 Access { node: NodeId, want: Access }
    18 ReadLink { node: NodeId }
    19 GetXattr { node: NodeId, name: &'a [u8] }
    20 SetXattr { node: NodeId, name: &'a [u8], value: &'a [u8] }
    21 ListXattr { node: NodeId }
    22 RemoveXattr { node: NodeId, name: &'a [u8] }
    23 Forget { node: NodeId, lookups: u64 }
    24 Open { node: NodeId, mode: Mode }
    25 Read { open: OpenId, offset: u64, len: u32 }
    26 Write { open: OpenId, offset: Option<u64>, data: &'a [u8] }
    27 FSync { open: OpenId, data_only: bool }
    28 Allocate { open: OpenId, offset: u64, len: u64, hole: bool }
    29 Lock { open: OpenId, lock: Lock }
    30 Ioctl { open: OpenId, code: u32, input: &'a [u8] }
    31 Close { open: OpenId }
}

impl Request<'_> {
    /// Returns whether the request can change what the volume holds.
    pub(crate) fn changes(&self) -> bool {
        matches!(
            self,
            Self::Create { .. }
                | Self::MkDir { .. }
                | Self::MkNod { .. }
                | Self::Symlink { .. }
                | Self::Link { .. }
                | Self::Unlink { .. }
                | Self::RmDir { .. }
                | Self::Rename { .. }
                | Self::SetAttr { .. }
                | Self::SetXattr { .. }
                | Self::RemoveXattr { .. }
                | Self::Write { .. }
                | Self::Allocate { .. }
                | Self::Ioctl { .. }
        )
    }
}

/// Who makes a request, and when.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) now: Time,
}

fields! { Caller { uid, gid, groups, now } }

/// The first message of a worker, once its volume is attached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hello {
    pub(crate) caps: Caps,
    pub(crate) root: NodeId,
    pub(crate) commit_ms: u64,
    /// Whether the plug-in wants calls of `forget`.
    pub(crate) forgets: bool,
}

fields! {
    Hello { caps, root, commit_ms, forgets }
    Caps { bits, name_max, size_max, time_step }
}

/// An entry of a listing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed<'a> {
    pub(crate) next: Cookie,
    pub(crate) node: NodeId,
    pub(crate) kind: FileKind,
    pub(crate) name: &'a [u8],
    pub(crate) attr: Option<Attr>,
}

impl<'a> Field<'a> for Listed<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        self.next.put(out);
        self.node.put(out);
        self.kind.put(out);
        self.name.put(out);
        self.attr.put(out);
    }
    fn take(from: &mut &'a [u8]) -> Option<Self> {
        Some(Self {
            next: Field::take(from)?,
            node: Field::take(from)?,
            kind: Field::take(from)?,
            name: Field::take(from)?,
            attr: Field::take(from)?,
        })
    }
}

/// A message of a worker that is no reply.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<'a> {
    /// A message for whoever runs the host.
    Line { is_error: bool, words: &'a [u8] },
    /// The arguments of `VolaryHost.changed`.
    Changed { what: u32, node: Option<NodeId> },
}

impl<'a> Field<'a> for Event<'a> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Line { is_error, words } => {
                out.push(0);
                is_error.put(out);
                words.put(out);
            }
            Self::Changed { what, node } => {
                out.push(1);
                what.put(out);
                node.put(out);
            }
        }
    }
    fn take(from: &mut &'a [u8]) -> Option<Self> {
        Some(match u8::take(from)? {
            0 => Self::Line {
                is_error: Field::take(from)?,
                words: Field::take(from)?,
            },
            1 => Self::Changed {
                what: Field::take(from)?,
                node: Field::take(from)?,
            },
            _ => return None,
        })
    }
}

/// Returns the status and the body of an error's reply.
pub(crate) fn failed(e: &Error) -> (i32, Vec<u8>) {
    let words = e.to_string();
    let words = match words == e.kind().words() {
        true => &[],
        false => words.as_bytes(),
    };
    let words = words.get(..WORDS_MAX).unwrap_or(words);
    (convert::code(e.kind()), words.to_vec())
}

/// Returns the error of a reply; `None` for an invalid status, or a message that is too long.
pub(crate) fn error(status: i32, words: &[u8]) -> Option<Error> {
    let kind: Kind = convert::kind(status.into())?;
    match words.len() {
        0 => Some(kind.into()),
        1..=WORDS_MAX => Some(Error::note(kind, volary_core::escape(words).to_string())),
        _ => None,
    }
}
