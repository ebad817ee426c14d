//! [`Vol`] itself: a handle on the state that its clones share. Its methods are elsewhere.

use super::held::Held;
use std::sync::Arc;

/// An open volume, accessed by paths, as [`std::fs`] does for the host.
///
/// ```
/// use volary::Vol;
///
/// # fn main() -> volary::VolResult<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let image = dir.path().join("disk.img");
/// let vol = Vol::make(&image, "fat32", 64 << 20)?;
/// vol.mkdir_all("/docs/2026")?;
/// vol.write("/docs/2026/notes.txt", b"kept")?;
/// vol.close()?;
///
/// let vol = Vol::open(&image)?;
/// assert_eq!(vol.read("/docs/2026/notes.txt")?, b"kept");
/// for found in vol.walk("/") {
///     println!("{}", String::from_utf8_lossy(&found?.path));
/// }
/// # Ok(())
/// # }
/// ```
///
/// **Paths** are bytes, as volumes store them: `&str`, `String` and `&[u8]` all work. They begin at
/// the root, with or without a slash. Symlinks are followed within the volume: no path leads out of
/// it.
///
/// **Rights**: whoever can open the image may do everything; modes and owners in it do not restrict
/// this handle. Clients of a server on it have only the rights that its protocol gives them.
///
/// **Threads**: a clone is another handle on the same volume. All methods take `&self`, so any
/// number of threads can use it. Each operation happens as a whole or not at all, unless it says
/// otherwise.
///
/// **The end**: [`close`](Self::close) makes everything durable and marks the volume as cleanly
/// detached. Dropping the last handle does so too, but cannot return errors: programs that write
/// should close. While a volume is open for changes, they become durable within seconds
/// ([`VolOptions::commit`](crate::VolOptions::commit)). [`sync`](Self::sync) makes them durable at
/// once.
#[derive(Clone, Debug)]
pub struct Vol {
    pub(super) held: Arc<Held>,
}

impl From<Held> for Vol {
    fn from(held: Held) -> Self {
        Self {
            held: Arc::new(held),
        }
    }
}
