//! The arguments of a worker.

use crate::wire::Field;
use volary_core::Time;

/// How many requests a worker answers at once, each on its own connection.
pub(super) const LANES: usize = 8;
/// How many connections a worker has: the lanes, and one for events.
pub(super) const SOCKETS: usize = LANES + 1;
/// What a worker has to attach, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) library: Vec<u8>,
    pub(crate) name: Vec<u8>,
    pub(crate) config: Vec<u8>,
    pub(crate) read_only: bool,
    pub(crate) memory: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) umask: u32,
    pub(crate) now: Time,
}

impl Field<'_> for Spec {
    fn put(&self, out: &mut Vec<u8>) {
        for bytes in [&self.library, &self.name, &self.config] {
            bytes.as_slice().put(out);
        }
        self.read_only.put(out);
        self.memory.put(out);
        for number in [self.uid, self.gid, self.umask] {
            number.put(out);
        }
        self.now.put(out);
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        let mut bytes = || <&[u8] as Field<'_>>::take(from).map(<[u8]>::to_vec);
        let (library, name, config) = (bytes()?, bytes()?, bytes()?);
        Some(Self {
            library,
            name,
            config,
            read_only: Field::take(from)?,
            memory: Field::take(from)?,
            uid: Field::take(from)?,
            gid: Field::take(from)?,
            umask: Field::take(from)?,
            now: Field::take(from)?,
        })
    }
}
