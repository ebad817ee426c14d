//! The states that a power cut may leave of a disk, and the explorer that judges them. May use
//! `disks`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `cut` | the sectors in flight, their fate, and the choices to try |
//! | `fault` | sectors that went bad |
//! | `lazy` | choices that are made when a sector is read |
//! | `subject` | the interface of a thing to be tortured |
//! | `traces` | results of work that are reused for all disks with the same content |
//! | `explore` | recovers and judges every state |

pub mod cut;
pub mod explore;
pub mod fault;
pub mod lazy;
pub mod subject;

mod traces;
