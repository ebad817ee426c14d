//! A SET_INFO in progress.

use super::open::File;
use crate::files::call::Call;
use volary_session::Session;

/// A SET_INFO request: its file, and the new values.
pub(super) struct Setting<'c, 'a> {
    pub(super) session: Session,
    pub(super) call: &'c Call<'a>,
    pub(super) file: &'c File,
    pub(super) buf: &'c [u8],
}
