//! Determines the rights of an open.

use super::super::access;
use super::{Opening, Walked};
use crate::answer::Failure;
use crate::files::attrs;
use crate::files::call::Call;
use crate::files::security::stored;
use crate::wire::Status;
use crate::wire::create::option;
use crate::wire::fscc::file::attribute;
use volary_core::Attr;
use volary_session::Session;

impl Opening<'_, '_> {
    /// Returns the rights on an existing node.
    ///
    /// # Errors
    /// `MEDIA_WRITE_PROTECTED` for writing or deleting a file on a volume that takes no changes;
    /// `ACCESS_DENIED` for more than the caller or the tree may have, and for writing a read-only
    /// file. `ACCESS_DENIED` also for overwriting a hidden or system file without these attributes
    /// in the request; `CANNOT_DELETE` for deleting a read-only file on close.
    pub(super) fn granted(&self, walked: &Walked, attr: &Attr) -> Result<u32, Failure> {
        let request = self.request;
        let asked = request.access & !access::MAXIMUM_ALLOWED;
        let implied = if request.disposition.truncates() {
            access::WRITE_DATA
        } else {
            0
        };
        let writes = (asked | implied) & access::WRITES != 0;
        let deletes = request.has(option::DELETE_ON_CLOSE);
        if !is_dir(attr) && (writes || deletes) {
            self.call.tree.check_volume_writable()?;
        }
        let may_write = writes || deletes || request.access & access::MAXIMUM_ALLOWED != 0;
        let dos = if may_write {
            attrs::dos(&self.call.tree.common, attr)
        } else {
            // No right in the request depends on it.
            0
        };
        let protected = !is_dir(attr) && dos & attribute::READONLY != 0;
        if protected && writes {
            return Err(Status::ACCESS_DENIED.into());
        }
        let marks = dos & (attribute::HIDDEN | attribute::SYSTEM);
        if implied != 0 && marks & !request.attributes != 0 {
            return Err(Status::ACCESS_DENIED.into());
        }
        let mut maximal = self.maximal(walked, attr)?;
        if protected {
            maximal &= !access::WRITES;
        }
        if (asked | implied) & !maximal != 0 {
            return Err(Status::ACCESS_DENIED.into());
        }
        let granted = if request.access & access::MAXIMUM_ALLOWED != 0 {
            maximal
        } else {
            asked
        };
        if deletes {
            if protected {
                return Err(Status::CANNOT_DELETE.into());
            }
            if granted & access::DELETE == 0 {
                return Err(Status::ACCESS_DENIED.into());
            }
        }
        Ok(granted)
    }

    /// Returns the rights on a new node, which are those that the request asks for.
    pub(super) fn granted_new(&self) -> Result<u32, Failure> {
        let all = access::ALL & self.call.tree.access;
        let asked = self.request.access & !access::MAXIMUM_ALLOWED;
        if asked & !all != 0 {
            return Err(Status::ACCESS_DENIED.into());
        }
        Ok(if self.request.access & access::MAXIMUM_ALLOWED != 0 {
            all
        } else {
            asked
        })
    }

    /// Returns all rights that the caller can have on the node in this tree.
    pub(super) fn maximal(&self, walked: &Walked, attr: &Attr) -> Result<u32, Failure> {
        maximal(self.call, walked.dir_attr.as_ref(), attr)
    }
}

/// Returns all rights that the caller can have in its tree on a node with a name in `dir`, which is
/// `None` for the root of the share.
///
/// # Errors
/// Those of the volume.
pub(in crate::files) fn maximal(
    call: &Call<'_>,
    dir: Option<&Attr>,
    attr: &Attr,
) -> Result<u32, Failure> {
    let session = &call.tree.session;
    let cred = session.cred();
    let (of, attr) = (attr, &access::as_found(session, attr)?);
    let found = |dir| access::as_found(session, dir);
    let dir_found = dir.map(found).transpose()?;
    let mut maximal = access::maximal(attr, dir_found.as_ref(), cred);
    let root = call.tree.common.root_session();
    if let Some(kept) = stored::read(&root, of) {
        let by_dir = match dir {
            Some(dir) => by_dir(session, &root, dir)?,
            None => 0,
        };
        let more = if maximal & access::DELETE == 0 {
            0
        } else {
            by_dir
        };
        maximal &= access::of_mode(attr, cred) | access::NOT_BY_MODE;
        maximal = (maximal | access::NOT_BY_MODE) & stored::maximal(&kept, attr, cred) | more;
    }
    Ok(maximal & call.tree.access)
}

/// Returns the rights on an entry that its directory gives. Whoever may list the directory may read
/// attributes, and whoever may delete its children may delete the entry.
fn by_dir(session: &Session, root: &Session, dir: &Attr) -> Result<u32, Failure> {
    let cred = session.cred();
    let mut own = access::maximal(&access::as_found(session, dir)?, None, cred);
    if let Some(kept) = stored::read(root, dir) {
        own &= stored::maximal(&kept, dir, cred);
    }
    let gives = |right: u32, given: u32| if own & right != 0 { given } else { 0 };
    Ok(gives(access::READ_DATA, access::READ_ATTRIBUTES)
        | gives(access::DELETE_CHILD, access::DELETE))
}

fn is_dir(attr: &Attr) -> bool {
    attr.kind == volary_core::FileKind::Dir
}
