//! A SET_INFO under way.

use super::open::File;
use crate::files::call::Call;
use volary_session::Session;

/// What a SET_INFO is about, and what it is to become.
pub(super) struct Setting<'c, 'a> {
    pub(super) session: Session,
    pub(super) call: &'c Call<'a>,
    pub(super) file: &'c File,
    pub(super) buf: &'c [u8],
}
