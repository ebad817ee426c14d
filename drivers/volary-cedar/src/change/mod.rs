//! What is done with files: nodes, content, names, versions and checksums, each change whole or not at
//! all. Uses the rooms up to `tree`.

pub(crate) mod ahead;
pub(crate) mod cookies;
pub(crate) mod file;
pub(crate) mod files;
pub(crate) mod found;
pub(crate) mod names;
pub(crate) mod nodes;
pub(crate) mod sealing;
pub(crate) mod versions;
