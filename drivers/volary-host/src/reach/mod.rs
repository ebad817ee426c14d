//! Every way to a descriptor: one step from the next, the directory where all begins, what the host's
//! file system can do, whether a node lies in the tree, news of other processes. Uses `held` and `kernel`.

pub(crate) mod beneath;
pub(crate) mod probe;
pub(crate) mod resolve;
pub(crate) mod root;
pub(crate) mod tree;
pub(crate) mod watch;
