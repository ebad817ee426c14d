//! What the format says of a volume.
