//! What is chosen when a directory is attached.

/// How to attach a directory.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Refuse changes.
    pub read_only: bool,
    /// Open nodes by handle, where the host allows it.
    pub by_handle: bool,
    /// Set-uid and set-gid bits of files can be set; without, they are taken from each mode that
    /// is set, as for a program without the right to. Set-gid of directories always can.
    pub set_ids: bool,
    /// How many nodes are remembered: about 150 bytes each.
    pub nodes_max: usize,
    /// How many descriptors are held for nodes, beside those of opens; `None`
    /// for half of what the process may have (`RLIMIT_NOFILE`).
    pub descriptors_max: Option<usize>,
    /// Read whole files in batches by `io_uring`, where the host allows it.
    pub rings: bool,
    /// Tell where on the [`device`](crate::device) the content of files lies. Dirty content is written there first;
    /// content that is in the page cache has no place.
    pub places: bool,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            by_handle: true,
            set_ids: true,
            nodes_max: 1 << 18,
            descriptors_max: None,
            rings: true,
            places: false,
        }
    }
}
