//! Every way to a descriptor: single steps, the attached root directory, the host's abilities,
//! whether a node lies in the tree, and changes by other processes. Uses `held` and `kernel`.

pub(crate) mod beneath;
pub(crate) mod probe;
pub(crate) mod resolve;
pub(crate) mod root;
pub(crate) mod tree;
pub(crate) mod watch;
