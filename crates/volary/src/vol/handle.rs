//! [`Vol`] itself: what its clones share, and nothing of what they do.

use super::held::Held;
use std::sync::Arc;

/// A volume that is open, by paths: what [`std::fs`] is for the host.
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
/// **Paths** are bytes, as volumes hold them: `&str`, `String` and `&[u8]` all do. They begin at the root, with a
/// slash or without. Symlinks on the way are followed within the volume: no path leads out of it.
///
/// **Rights**: who can open the image may do all; modes and owners in it keep nothing from this handle. Those whom
/// a server on it lets in have only the rights that its protocol gives them.
///
/// **Threads**: a clone is another handle on the same volume, and all methods take `&self`: use it from as many
/// threads as you like. Each operation happens as a whole or not at all, unless it says otherwise.
///
/// **The end**: [`close`](Self::close) makes everything durable and marks the volume as cleanly left. Dropping the
/// last handle does so too, but cannot tell what went wrong: programs that write should close. While a volume is open
/// for changes, what was written becomes durable within seconds ([`VolOptions::commit`](crate::VolOptions::commit)); [`sync`](Self::sync) makes
/// it so at once.
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
