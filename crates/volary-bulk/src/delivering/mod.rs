//! Files on their way to the consumer, and those that need no sweep: read through the session or in
//! chunks. May use `interface`, `listing` and `state`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `ordinary` | a file that is read through the session |
//! | `together`, `large` | small files in batches, and large ones in chunks |
//! | `outlet` | delivers on the engine's own thread, or on several others |
//! | `fetch` | files read through the session ahead of their turn |

pub(crate) mod fetch;
pub(crate) mod large;
pub(crate) mod ordinary;
pub(crate) mod outlet;

mod together;
