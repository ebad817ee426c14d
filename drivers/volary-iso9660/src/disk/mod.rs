//! What the standard itself stores, checked: descriptors, the volume, directory records, names and
//! times; and the cache. Uses no other room.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `ondisk` | structures as stored |
//! | `date`, `names` | stored times; names and other text fields |
//! | `cache` | the cache for reading |
//! | `descriptors` | the volume's descriptors |
//! | `record` | directory records |
//! | `volume` | a volume, as one of its descriptors describes it |

pub(crate) mod cache;
pub(crate) mod date;
pub(crate) mod descriptors;
pub(crate) mod names;
pub(crate) mod ondisk;
pub(crate) mod record;
pub(crate) mod volume;
