//! [`Answer`]: the reply to a request, and the state that one request of a compound passes to the
//! next.

use crate::wire::{FileId, Out, Short, Status};

/// The reply to a request: its body, from `StructureSize` on.
pub(crate) type Answer<T = Vec<u8>> = Result<T, Failure>;

/// The state that one request of a compound passes to the related one after it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Related {
    /// The file that the previous request opened or named. `create` sets it.
    pub(crate) file: Option<FileId>,
    /// The status of the previous request, if it failed.
    pub(crate) failed: Option<Status>,
    /// Whether this request is related to the previous one.
    pub(crate) is_related: bool,
}

impl Related {
    /// Returns the file that a request names. In a related request, [`FileId::PREVIOUS`] means the
    /// previous request's file. Remembers the file for the next request.
    ///
    /// # Errors
    /// The previous request's failure; `INVALID_PARAMETER` if it had no file.
    pub(crate) fn resolve(&mut self, named: FileId) -> Result<FileId, Failure> {
        let id = if named == FileId::PREVIOUS && self.is_related {
            let missing = self.failed.unwrap_or(Status::INVALID_PARAMETER);
            self.file.ok_or(missing)?
        } else {
            named
        };
        self.file = Some(id);
        Ok(id)
    }
}

/// A reply other than success with an ordinary body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    /// The reply's whole body, if it is not the plain error response. Examples are
    /// `BUFFER_OVERFLOW` with data, or an error with contexts.
    pub(crate) body: Option<Vec<u8>>,
}

impl Failure {
    /// Returns a failure with a status and the reply's whole body.
    pub(crate) fn with_body(status: Status, body: Vec<u8>) -> Self {
        Self {
            status,
            body: Some(body),
        }
    }

    /// Returns an error response with `data` as its `ErrorData` (MS-SMB2 2.2.2), as
    /// `contexts` error contexts (0 before 3.1.1).
    pub(crate) fn with_data(status: Status, contexts: u8, data: &[u8]) -> Self {
        Self::with_body(status, error_body(contexts, data))
    }

    /// Returns the reply's body.
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body.unwrap_or_else(|| error_body(0, &[]))
    }
}

fn error_body(contexts: u8, data: &[u8]) -> Vec<u8> {
    let mut out = Out::with_capacity(9);
    out.u16(9).u8(contexts).u8(0);
    out.u32(crate::wire::out::len32(data.len()));
    if data.is_empty() {
        out.u8(0);
    } else {
        out.bytes(data);
    }
    out.done()
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self { status, body: None }
    }
}

impl From<Short> for Failure {
    fn from(_: Short) -> Self {
        Status::INVALID_PARAMETER.into()
    }
}

/// Returns the body of replies without content.
pub(crate) fn empty_body() -> Vec<u8> {
    vec![4, 0, 0, 0]
}
