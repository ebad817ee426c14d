//! Scripts of operations, the trees that result, and what is promised meanwhile. May use `disks`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `op` | operations, in words |
//! | `tree` | the content of a volume |
//! | `history` | the promises of a volume while a script ran |
//! | `scripts` | all short scripts, and random long ones |

pub mod history;
pub mod op;
pub mod scripts;
pub mod tree;
