//! Leases: what a client may keep to itself until it is told otherwise.

/// Whose lease: a client, and the client's key for the file. An oplock is a
/// lease whose key is its own open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseKey {
    /// The client.
    pub client: [u8; 16],
    /// The client's key, for one node at a time.
    pub key: [u8; 16],
}
