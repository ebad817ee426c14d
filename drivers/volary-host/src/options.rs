//! The options for attaching a directory.

/// How to attach a directory.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Refuse changes.
    pub read_only: bool,
    /// Open nodes by handle, if the host permits it.
    pub by_handle: bool,
    /// Whether set-uid and set-gid bits of files can be set. If not, they are cleared from each
    /// mode that is set, as the host does for a program without that right. Set-gid of directories
    /// can always be set.
    pub set_ids: bool,
    /// How many nodes are remembered, at about 150 bytes each.
    pub nodes_max: usize,
    /// How many descriptors are held for nodes, beside those of opens. `None` means half of the
    /// process's limit (`RLIMIT_NOFILE`).
    pub descriptors_max: Option<usize>,
    /// Read whole files in batches by `io_uring`, if the host permits it.
    pub rings: bool,
    /// Report where on the [`device`](crate::device) the content of files lies. Dirty content is
    /// written to the device first. Content in the page cache has no place.
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
